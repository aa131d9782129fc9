"""Only a table's own folder can be handed out, and only validation says which that is."""

import ast
import dataclasses
from pathlib import Path

import pytest

from arco.govern import places
from arco.govern.places import ValidatedPlace, Validation
from arco.iceberg.guardrails import LOCATION_PROPERTIES
from arco.kernel.errors import AccessDenied, BrokenInvariant
from arco.kernel.scope import Scope
from arco.storage.roots import Root

from .checked_places import OTHER, SCOPE, UUID, Described, base_of, location_of, place_of

ROOT = Root("s3", "lake", "warehouse")
SOURCE = Path(places.__file__).parents[1]


def denied(described: Described, uuid: str = UUID, scope: Scope = SCOPE) -> bool:
    try:
        Validation(ROOT, base_of(ROOT)).table(scope, uuid, described)
    except AccessDenied:
        return True
    return False


def test_a_tables_own_folder_is_given_by_bucket_and_path() -> None:
    place = place_of(ROOT)
    assert (place.uri, place.bucket) == (location_of(ROOT), "lake")
    assert place.path == f"warehouse/acme/sales/data/orders-{UUID}"


def test_a_root_without_a_folder_has_paths_without_one() -> None:
    assert place_of(Root("s3", "lake", "")).path == f"acme/sales/data/orders-{UUID}"


def test_nobody_makes_a_place_but_validation() -> None:
    with pytest.raises(BrokenInvariant):
        ValidatedPlace("s3://lake/", "lake", "", object())
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(place_of(ROOT), path="")


def test_no_other_file_speaks_of_the_proof() -> None:
    speakers = {
        path.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ValidatedPlace")
        or (isinstance(node, ast.Name | ast.Attribute) and getattr(node, "id", getattr(node, "attr", "")) == "_PROOF")
    }
    assert speakers == {"places.py"}


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/warehouse",
        "s3://lake/warehouse/acme/sales/data",
        "s3://lake/warehouse/acme/sales/data/",
        f"s3://lake/warehouse/acme/sales/data/orders-{OTHER}",
        f"s3://lake/warehouse/acme/sales/data/x/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/data/orders-{UUID}/deeper",
        f"s3://lake/warehouse/acme/sales/data/*-{UUID}",
        f"s3://lake/warehouse/acme/sales/data/-{UUID}",
        f"s3://lake/warehouse/acme/other/data/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/_catalog/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/data/../data/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/data/%2e%2e/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales//data/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/data\\orders-{UUID}",
        f"s3://lake2/warehouse/acme/sales/data/orders-{UUID}",
        f"gs://lake/warehouse/acme/sales/data/orders-{UUID}",
        f"file:///warehouse/acme/sales/data/orders-{UUID}",
        f"s3://lake/warehouse/acme/sales/data/orders-{UUID}\n",
        "s3://169.254.169.254/latest",
        "",
    ],
)
def test_any_other_place_is_denied(location: str) -> None:
    assert denied(Described(location))


@pytest.mark.parametrize("setting", LOCATION_PROPERTIES)
@pytest.mark.parametrize(
    "elsewhere",
    [
        "s3://lake/warehouse",
        location_of(ROOT, OTHER),
        f"{location_of(ROOT)}/../orders-{OTHER}",
        f"{location_of(ROOT)}x/data",
        "gs://lake/x",
    ],
)
def test_every_setting_that_says_where_files_go_is_looked_at(setting: str, elsewhere: str) -> None:
    own = location_of(ROOT)
    assert not denied(Described(own, {setting: f"{own}/elsewhere"}))
    assert denied(Described(own, {setting: elsewhere}))


def test_another_identity_does_not_get_this_ones_folder() -> None:
    assert denied(Described(location_of(ROOT)), uuid=OTHER)


def test_another_workspace_does_not_get_this_ones_folder() -> None:
    assert denied(Described(location_of(ROOT)), scope=Scope.of("acme", "other"))


def test_other_spellings_of_one_place_are_one_place() -> None:
    assert not denied(Described(location_of(ROOT).replace("s3://", "s3a://") + "/"))


@pytest.mark.parametrize("below", ["data", "data/01J/1", "data/ü b"])
def test_a_folder_inside_a_place_is_less_than_it(below: str) -> None:
    place = place_of(ROOT)
    found = Validation(ROOT, base_of(ROOT)).within(place, f"{place.uri}/{below}")
    assert (found.bucket, found.path) == ("lake", f"{place.path}/{below}")


@pytest.mark.parametrize("elsewhere", ["", "x", "/../x", "/data/../../x", "/data//x", "/%2e%2e/x"])
def test_a_folder_that_is_not_inside_is_denied(elsewhere: str) -> None:
    place = place_of(ROOT)
    with pytest.raises(AccessDenied):
        Validation(ROOT, base_of(ROOT)).within(place, f"{place.uri}{elsewhere}")
    with pytest.raises(AccessDenied):
        Validation(ROOT, base_of(ROOT)).within(place, location_of(ROOT, OTHER) + "/data")


def test_files_beside_the_root_have_a_folder_of_the_same_bucket() -> None:
    found = Validation(ROOT, base_of(ROOT)).beside_the_root("s3a://lake/landing/orders/")
    assert (found.bucket, found.path) == ("lake", "landing/orders")


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "s3://lake",
            "s3://lake/",
            "s3://lake/warehouse",
            "s3://lake/warehouse/acme/sales/_catalog",
            "s3://other/landing",
        ),
        *("s3://lake/x/../warehouse", "s3://lake/x//y", "gs://lake/landing", "file:///landing"),
    ],
)
def test_files_in_the_root_or_elsewhere_have_none(uri: str) -> None:
    with pytest.raises(AccessDenied):
        Validation(ROOT, base_of(ROOT)).beside_the_root(uri)
    with pytest.raises(AccessDenied):
        Validation(Root("s3", "lake", ""), "s3://lake").beside_the_root("s3://lake/landing")
