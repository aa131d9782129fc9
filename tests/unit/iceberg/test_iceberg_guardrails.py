"""Guardrails: Arco's own properties and places outside the table, in every disguise."""

import pytest

from arco.iceberg import guardrails
from arco.iceberg.changes import RemoveProperties, SetLocation, SetProperties
from arco.iceberg.locations import inside, is_winding, same_place
from arco.kernel.errors import InvalidInput
from fixtures.iceberg.ground import LOCATION, commit, created


@pytest.mark.parametrize("key", ["arco.x", "ARCO.x", "Arco.Quality.Status", "arco."])
def test_reserved_properties_are_refused_in_any_letter_case(key):
    for updates in ([SetProperties({key: "v"})], [RemoveProperties((key,))]):
        with pytest.raises(InvalidInput, match="reserved properties"):
            guardrails.check_updates(updates, own_location=LOCATION)
    with pytest.raises(InvalidInput, match="reserved properties"):
        guardrails.check_properties({key: "v"})


def test_all_offenders_are_named_at_once():
    updates = [SetProperties({"arco.a": "1", "fine": "2"}), RemoveProperties(("ARCO.b", "arco.a"))]
    with pytest.raises(InvalidInput, match=r"^reserved properties: arco\.a, ARCO\.b$"):
        guardrails.check_updates(updates, own_location=LOCATION)


@pytest.mark.parametrize("key", ["arco", "arcoo.x", "my.arco.x", "owner"])
def test_other_properties_are_free(key):
    guardrails.check_updates([SetProperties({key: "v"}), RemoveProperties((key,))], own_location=LOCATION)


@pytest.mark.parametrize("location", [LOCATION, f"{LOCATION}/"])
def test_a_table_may_repeat_its_own_location(location):
    guardrails.check_updates([SetLocation(location)], own_location=LOCATION)


@pytest.mark.parametrize("location", ["s3://lake/elsewhere", f"{LOCATION}/sub", f"{LOCATION}x", "s3://LAKE/default"])
def test_a_table_may_not_move_unless_its_new_place_is_allowed(location):
    with pytest.raises(InvalidInput, match="set-location"):
        guardrails.check_updates([SetLocation(location)], own_location=LOCATION)
    with pytest.raises(InvalidInput, match="set-location"):
        guardrails.check_updates([SetLocation(location)], own_location=None)
    guardrails.check_updates([SetLocation(location)], own_location=LOCATION, allowed=lambda place: place == location)


def test_a_place_that_climbs_is_never_even_asked_about():
    with pytest.raises(InvalidInput, match="set-location"):
        guardrails.check_updates([SetLocation("s3://lake/ok/../secret")], own_location=LOCATION, allowed=lambda _: True)


@pytest.mark.parametrize("key", guardrails.LOCATION_PROPERTIES)
def test_every_place_that_engines_write_to_is_judged(key):
    inner = commit(created(), {"action": "set-properties", "updates": {key: f"{LOCATION}/data"}})
    guardrails.check_locations(inner, own_location=LOCATION)
    outer = commit(created(), {"action": "set-properties", "updates": {key: "s3://lake/other"}})
    assert (key, "s3://lake/other") in guardrails.effective_locations(outer)
    with pytest.raises(InvalidInput, match=f"{key}=s3://lake/other"):
        guardrails.check_locations(outer, own_location=LOCATION)
    guardrails.check_locations(outer, own_location=LOCATION, allowed=lambda place: place.startswith("s3://lake/other"))


def test_a_winding_place_is_outside_whatever_the_policy_says():
    winding = commit(created(), {"action": "set-properties", "updates": {"write.data.path": "s3://lake/ok/../secret"}})
    with pytest.raises(InvalidInput, match="outside of the table"):
        guardrails.check_locations(winding, own_location=LOCATION, allowed=lambda _: True)


def test_the_result_is_judged_and_not_the_change():
    # The outside place was there before; a request that leaves it alone is refused all the same.
    base = commit(created(), {"action": "set-properties", "updates": {"write.data.path": "s3://lake/other"}})
    after = commit(base, {"action": "set-properties", "updates": {"harmless": "x"}})
    with pytest.raises(InvalidInput, match=r"write\.data\.path"):
        guardrails.check_locations(after, own_location=LOCATION)
    cured = commit(base, {"action": "remove-properties", "removals": ["write.data.path"]})
    guardrails.check_locations(cured, own_location=LOCATION)


def test_a_moved_table_is_judged_by_its_new_place():
    moved = commit(
        created(),
        {"action": "set-location", "location": "s3://lake/free/t"},
        {"action": "set-properties", "updates": {"write.data.path": "s3://lake/free/t/data"}},
    )
    guardrails.check_locations(moved, own_location=LOCATION, allowed=lambda place: place == "s3://lake/free/t")
    with pytest.raises(InvalidInput, match="location=s3://lake/free/t"):
        guardrails.check_locations(moved, own_location=LOCATION)


INSIDE = [
    ("s3://b/t", "s3://b/t", True),
    ("s3://b/t/", "s3://b/t", True),
    ("s3://b/t/x/y", "s3://b/t/", True),
    ("s3://b/tx", "s3://b/t", False),
    ("s3://b/t/../u", "s3://b/t", False),
    ("s3://b/t/..", "s3://b/t", False),
    ("s3://b/t/%2e%2E/u", "s3://b/t", False),
    ("s3://b/t/a%2Fb", "s3://b/t", False),
    ("s3://b/t//x", "s3://b/t", False),
    ("s3://b/t/./x", "s3://b/t", False),
    ("s3://b/t/..\\u", "s3://b/t", False),
    ("s3://b/t/../a:b", "s3://b/t", False),
    ("s3a://b/t/x", "s3://b/t", False),
    ("s3://B/t/x", "s3://b/t", False),
    ("file:/tmp/t/x", "file:///tmp/t", True),
    ("/tmp/t/x", "file:/tmp/t", True),
    ("file:///tmp/t/../u", "/tmp/t", False),
    ("s3://b/t", "", False),
    ("", "s3://b/t", False),
]


@pytest.mark.parametrize(("location", "folder", "expected"), INSIDE)
def test_one_place_lies_inside_another_only_if_every_reader_agrees(location, folder, expected):
    assert inside(location, folder) is expected


def test_spellings_of_one_folder_are_one_place():
    assert same_place("file:/tmp/t", "file:///tmp/t/")
    assert same_place("/tmp/t", "file:/tmp/t")
    assert not same_place("s3://b/t", "s3://b/T")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://b/t", False),
        ("s3://b/../t", True),
        ("s3://b/a:b/c", False),
        ("/a/x:/../b", True),
        ("s3://b/t\nu", True),
        ("file:///a/b/", False),
    ],
)
def test_a_winding_place_is_recognized(location, expected):
    assert is_winding(location) is expected
