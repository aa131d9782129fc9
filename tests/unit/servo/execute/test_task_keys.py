"""The keys of an attempt: what it reads, its own directory, and nothing else of the bucket."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.govern.policy_reader import allows

from arco import asset, daily, files, not_null
from arco.govern.places import Validation
from arco.govern.session_policy import policy_of
from arco.govern.vending import Credential, Grant
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import AccessDenied, InvalidInput
from arco.kernel.ids import TableUuid
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.servo.execute.computing import Assignment, Room, Rooms
from arco.servo.execute.task_keys import TaskKeys
from arco.storage.keys import Slug, table_folder
from arco.storage.roots import Root
from fixtures.servo.assigned import MATERIALIZATION, assigned

SCOPE, PROD = Scope.of("acme", "dev"), Scope.of("acme", "prod")
IN, OUT, ASIDE, OTHER = (f"0193e2a4-6d6e-7c1e-9f0a-5a1c0d2e3f4{number}" for number in range(4))
DIRECTORY = f"data/{MATERIALIZATION}/1"


class Vendor:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[Grant, ...], str, int]] = []

    async def vend_together(self, grants: Sequence[Grant], about: str, duration_s: int) -> Credential:
        self.asked.append((tuple(grants), about, duration_s))
        words = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
        return Credential("", {word: Secret(word) for word in words}, {}, None)


def folder(uuid: str, slug: str = "t", scope: Scope = SCOPE) -> str:
    return f"lake/{table_folder(scope, Slug(slug), TableUuid(uuid))}".rstrip("/")


def table(uuid: str, scope: Scope = SCOPE, **properties: str) -> TableMetadata:
    return TableMetadata(
        {"table-uuid": uuid, "location": f"s3://bucket/{folder(uuid, scope=scope)}", "properties": properties}
    )


def room(uuid: str, *, is_there: bool = True) -> Room:
    return Room(uuid, f"s3://bucket/{folder(uuid)}", {}, table(uuid) if is_there else None)


def keys(vendor: Vendor | None = None) -> TaskKeys:
    return TaskKeys(
        validation=Validation(Root("s3", "bucket", "lake"), "s3://bucket/lake"),
        vendor=vendor or Vendor(),
        scope=SCOPE,
        bucket="bucket",
        options_without_keys={"endpoint": "https://s3.example"},
        duration_s=3600,
    )


class May:
    """What a session with some grants may do, by a reader of policies."""

    def __init__(self, grants: Sequence[Grant]) -> None:
        self._document = policy_of(grants)

    def _all(self, actions: Sequence[str], path: str) -> set[bool]:
        return {allows(self._document, f"s3:{one}", f"arn:aws:s3:::bucket/{path}") for one in actions}

    def read(self, path: str) -> bool:
        (found,) = self._all(["GetObject"], path)
        return found

    def write(self, path: str) -> bool:
        (found,) = self._all(["PutObject", "DeleteObject", "AbortMultipartUpload"], path)
        return found

    def list(self, prefix: str) -> bool:
        return allows(self._document, "s3:ListBucket", "arn:aws:s3:::bucket", prefix)


@asset
def source(run):
    return run.spark.range(3)


@asset
def whole(source):
    return source


@asset(partitions=daily("date", start="2025-01-01"))
def by_day(run):
    return run.spark.range(3)


@asset(checks=[not_null("id", quarantine_rows=True)])
def checked(source):
    return source


def granted(given: Assignment, rooms: Rooms) -> May:
    return May(keys().grants(given, rooms))


def test_an_attempt_reads_its_inputs_and_writes_to_its_own_directory() -> None:
    may = granted(assigned(source, whole, tables={"source": table(IN)}), Rooms(room(OUT), None))
    assert may.read(f"{folder(IN)}/data/f.parquet")
    assert may.list(f"{folder(IN)}/data/")
    assert may.write(f"{folder(OUT)}/{DIRECTORY}/f.parquet")
    assert may.read(f"{folder(OUT)}/{DIRECTORY}")
    assert may.write(f"{folder(OUT)}/{DIRECTORY}-kept/f.parquet")


def test_it_touches_nothing_else() -> None:
    may = granted(assigned(source, whole, tables={"source": table(IN)}), Rooms(room(OUT), None))
    assert not may.write(f"{folder(IN)}/data/f.parquet")
    for elsewhere in (
        f"{folder(OUT)}/data/01JD7Z0Q3V8K4M2N6P9R5T1AAA/1/f.parquet",
        f"{folder(OUT)}/data/{MATERIALIZATION}/2/f.parquet",
        f"{folder(OUT)}/metadata/v1.metadata.json",
        f"{folder(OTHER)}/data/f.parquet",
        "lake/acme/dev/_catalog/manifests/catalog.manifest.json",
        "lake/acme/prod/data/t/f.parquet",
        "elsewhere/f",
    ):
        assert not may.read(elsewhere)
        assert not may.write(elsewhere)
    for prefix in ("", "lake/", "lake/acme/dev/_catalog/", "lake/acme/dev/data/", f"{folder(OTHER)}/", f"{folder(OUT)}/"):
        assert not may.list(prefix)


def test_rows_that_may_have_to_stay_are_read() -> None:
    given = assigned(by_day, partitions=[{"date": ["2025-01-01", "2025-01-02"]}])
    may = granted(given, Rooms(room(OUT), None))
    assert may.read(f"{folder(OUT)}/data/old/1/f.parquet")
    assert not may.write(f"{folder(OUT)}/data/old/1/f.parquet")
    new = granted(given, Rooms(room(OUT, is_there=False), None))
    assert not new.read(f"{folder(OUT)}/data/old/1/f.parquet")
    assert new.write(f"{folder(OUT)}/{DIRECTORY}/f.parquet")


def test_rows_that_are_set_aside_have_a_directory_of_their_own() -> None:
    may = granted(assigned(source, checked, tables={"source": table(IN)}), Rooms(room(OUT), room(ASIDE, is_there=False)))
    assert may.write(f"{folder(ASIDE)}/{DIRECTORY}/f.parquet")
    assert not may.read(f"{folder(ASIDE)}/data/old/1/f.parquet")


def test_what_another_workspace_lends_is_read_there_and_only_there() -> None:
    lent = assigned(source, whole, tables={"source": table(IN, PROD)}, workspace="acme/prod")
    may = granted(lent, Rooms(room(OUT), None))
    assert may.read(f"{folder(IN, scope=PROD)}/data/f.parquet")
    assert not may.read(f"{folder(IN)}/data/f.parquet")
    with pytest.raises(AccessDenied):
        keys().grants(assigned(source, whole, tables={"source": table(IN, PROD)}), Rooms(room(OUT), None))


def test_a_table_that_says_it_lies_with_another_gets_its_readers_nothing() -> None:
    liar = TableMetadata({"table-uuid": IN, "location": f"s3://bucket/{folder(OTHER)}", "properties": {}})
    with pytest.raises(AccessDenied):
        keys().grants(assigned(source, whole, tables={"source": liar}), Rooms(room(OUT), None))
    far = table(IN, **{"write.data.path": f"s3://bucket/{folder(OTHER)}/data"})
    with pytest.raises(AccessDenied):
        keys().grants(assigned(source, whole, tables={"source": far}), Rooms(room(OUT), None))


@asset(inputs={"raw": files("s3://bucket/landing/**/*.csv", header="true")})
def loaded(raw):
    return raw


def test_files_are_read_in_the_innermost_folder_that_has_them_all() -> None:
    given = assigned(loaded, files={"raw": ("s3://bucket/landing/a/1.csv", "s3://bucket/landing/a/b/2.csv")})
    may = granted(given, Rooms(room(OUT), None))
    assert may.read("landing/a/1.csv")
    assert may.read("landing/a/b/2.csv")
    assert not may.read("landing/c/1.csv")
    assert not may.write("landing/a/1.csv")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("s3://bucket/lake/acme/dev/_catalog/x.csv", AccessDenied),
        ("s3://bucket/lake/x.csv", AccessDenied),
        ("s3://bucket/x.csv", InvalidInput),
    ],
)
def test_files_in_the_root_or_of_a_whole_bucket_get_no_keys(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        keys().grants(assigned(loaded, files={"raw": (name,)}), Rooms(room(OUT), None))


def test_files_of_other_stores_need_none_of_these_keys() -> None:
    given = assigned(loaded, files={"raw": ("/p/1.csv", "s3://theirs/1.csv")})
    assert len(keys().grants(given, Rooms(room(OUT), None))) == 1


@pytest.mark.parametrize(("timeout_s", "asked_s"), [(None, 3600), (60, 900), (1800, 1801), (7200, 3600)])
def test_keys_live_as_long_as_an_attempt_may_take_as_far_as_the_store_gives_them(
    timeout_s: float | None, asked_s: int
) -> None:
    @asset(timeout=timeout_s)
    def timed(run):
        return run.spark.range(1)

    vendor = Vendor()
    options: dict[str, Any] = asyncio.run(keys(vendor).options(assigned(timed), Rooms(room(OUT), None)))
    ((_, about, duration_s),) = vendor.asked
    assert duration_s == asked_s
    assert about.endswith("/task_0123456789abcdef/1")
    assert options == {
        "endpoint": "https://s3.example",
        "access_key_id": "s3.access-key-id",
        "secret_access_key": "s3.secret-access-key",
        "session_token": "s3.session-token",
    }


def test_inputs_that_are_too_many_for_a_policy_are_refused_in_words() -> None:
    uuids = [f"0193e2a4-6d6e-7c1e-9f0a-5a1c0d2e3f{number}" for number in range(10, 30)]
    many = [
        grant
        for uuid in uuids
        for grant in keys().grants(assigned(source, whole, tables={"source": table(uuid)}), Rooms(room(OUT), None))[:1]
    ]
    with pytest.raises(InvalidInput, match="20 places are too many for one session policy"):
        policy_of(many)
    assert policy_of(many[:6])
