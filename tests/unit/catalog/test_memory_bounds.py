"""What a process remembers of its tables is bounded by named limits, however many tables there are and however large."""

import pytest

from arco.catalog import bases as bases_module
from arco.catalog import metadata_files
from arco.catalog.bases import Base, Bases
from arco.catalog.model import Kind
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata, empty_document
from arco.kernel.ids import WriteId
from arco.kernel.limits import (
    ANSWERS_KEPT_BYTES_MAX,
    METADATA_CACHE_BYTES_MAX,
    METADATA_CACHE_FILES_MAX,
    POINTER_CACHE_PARTS_MAX,
    POINTER_CACHE_TABLES_MAX,
)
from arco.storage.cas import Held
from arco.storage.port import Version
from arco.surface.http.kept_answers import KeptAnswers

from .ground import Ground, story

TABLES = 10_000
COLUMNS = 20


def described(columns: int = COLUMNS, snapshots: int = 0) -> TableMetadata:
    fields = [{"id": n, "name": f"c{n}", "type": "long", "required": False} for n in range(1, columns + 1)]
    schemas = [{"type": "struct", "schema-id": 0, "fields": fields}]
    many = [{"snapshot-id": n} for n in range(snapshots)]
    return TableMetadata(empty_document(2) | {"schemas": schemas, "snapshots": many})


def base(uuid: str, metadata: TableMetadata, generation: int = 1) -> Base[TableMetadata]:
    pointer = Pointer.buried(uuid, Kind.TABLE, f"memory://{uuid}", 0, "01")
    return Base(Held(pointer, Version("v"), generation, WriteId("0" * 26), (), 0), metadata)


def remembering() -> Bases[TableMetadata]:
    return Bases(Ground().server().ws, Tables())


def in_all(bases: Bases[TableMetadata]) -> int:
    return sum(Tables().parts(one.metadata) for one in bases._known.values())


def test_ten_thousand_tables_are_not_all_remembered() -> None:
    bases, metadata = remembering(), described()
    for number in range(TABLES):
        bases.remember(base(f"t{number}", metadata))
    assert len(bases._known) == POINTER_CACHE_TABLES_MAX
    assert in_all(bases) == bases._parts_in_all <= POINTER_CACHE_PARTS_MAX
    assert bases.known(f"t{TABLES - 1}") is not None
    assert bases.known("t0") is None


def test_large_tables_are_remembered_as_far_as_they_fit() -> None:
    """Thousands of tables with hundreds of snapshots would fill any machine, though they are fewer than the limit."""
    bases, metadata = remembering(), described(snapshots=500)
    for number in range(POINTER_CACHE_TABLES_MAX):
        bases.remember(base(f"t{number}", metadata))
    assert in_all(bases) == bases._parts_in_all <= POINTER_CACHE_PARTS_MAX
    assert len(bases._known) == POINTER_CACHE_PARTS_MAX // Tables().parts(metadata)
    bases.remember(base("huge", described(snapshots=POINTER_CACHE_PARTS_MAX)))
    assert bases._parts_in_all == in_all(bases) == 0, "one that is more than all may be is not kept, and counts nowhere"


def test_what_changes_or_is_forgotten_is_counted_once() -> None:
    bases = remembering()
    for generation in range(1, 100):
        bases.remember(base("t", described(columns=generation), generation))
    bases.remember(base("t", described(columns=1), generation=1))  # older than what is known
    assert bases._parts_in_all == Tables().parts(described(columns=99))
    bases.forget("t")
    bases.forget("t")
    assert bases._parts_in_all == 0


@story
async def test_metadata_files_are_remembered_within_files_and_bytes() -> None:
    files = Ground().server().ws.files
    for number in range(METADATA_CACHE_FILES_MAX + 100):
        await files.write(f"file:///lake/t/w/data/t{number}/metadata/f.metadata.json", b"x")
    assert len(files._cache) == METADATA_CACHE_FILES_MAX == files._cached_bytes
    large = b"x" * (METADATA_CACHE_BYTES_MAX // 8)
    for number in range(20):
        location = f"file:///lake/t/w/data/l{number}/metadata/f.metadata.json"
        await files.write(location, large)
        assert await files.read(location) == large
    assert sum(map(len, files._cache.values())) == files._cached_bytes <= METADATA_CACHE_BYTES_MAX
    huge = b"x" * (METADATA_CACHE_BYTES_MAX + 1)
    await files.write("file:///lake/t/w/data/h/metadata/f.metadata.json", huge)
    assert await files.read("file:///lake/t/w/data/h/metadata/f.metadata.json") == huge
    assert sum(map(len, files._cache.values())) == files._cached_bytes <= METADATA_CACHE_BYTES_MAX


def test_answers_are_kept_within_their_bytes() -> None:
    kept = KeptAnswers()
    body = b"x" * 20_000
    for number in range(TABLES):
        kept.response(f"t{number}", lambda: body, {})
    assert sum(map(len, kept._kept.values())) == kept.size_bytes <= ANSWERS_KEPT_BYTES_MAX
    assert len(kept._kept) == ANSWERS_KEPT_BYTES_MAX // len(body)


def test_a_server_that_remembers_little_serves_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases_module, "POINTER_CACHE_TABLES_MAX", 8)
    monkeypatch.setattr(metadata_files, "METADATA_CACHE_FILES_MAX", 4)

    @story
    async def told() -> None:
        server = Ground().server()
        await server.found(*(f"t{number}" for number in range(40)))
        for _ in range(2):
            for number in range(40):
                assert (await server.load(f"t{number}")).name == f"t{number}"
        assert len(server.catalog.table_commits.bases._known) == 8
        assert len(server.ws.files._cache) == 4

    told()


def test_columns_inside_of_others_are_counted() -> None:
    inner = {"type": "struct", "fields": [{"id": 3, "name": "x", "type": "long", "required": False}]}
    nested = {"type": "list", "element-id": 2, "element-required": False, "element": inner}
    metadata = described(columns=1)
    before = Tables().parts(metadata)
    metadata.schemas[0]["fields"][0]["type"] = nested
    assert Tables().parts(metadata) == before + 2
