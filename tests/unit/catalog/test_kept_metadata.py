"""What a server keeps of its tables is bounded in bytes, not only in number: the metadata of one may be hundreds of megabytes."""

import gzip

import pytest

from arco.catalog import bases, metadata_files
from arco.iceberg.metadata_file import plain_size
from unit.catalog.ground import Ground, Server, story

FILLING = "x" * 20_000
"""A property as large as the metadata of a table with a few dozen snapshots."""
BYTES_MAX = 100_000


@pytest.fixture
def little_room(monkeypatch):
    monkeypatch.setattr(metadata_files, "METADATA_CACHE_BYTES_MAX", BYTES_MAX)
    monkeypatch.setattr(bases, "POINTER_CACHE_BYTES_MAX", BYTES_MAX)


async def fill(server: Server, names: str, commits: int, **properties: str) -> None:
    await server.found(*names)
    for number in range(commits):
        for name in names:
            change = {"action": "set-properties", "updates": {"filling": FILLING, "n": str(number), **properties}}
            await server.commit(name, f"{name} {number}", {"requirements": [], "updates": [change]})
    await server.settle()


@pytest.mark.usefixtures("little_room")
@story
async def test_one_hot_table_with_large_metadata_fills_no_memory():
    server = Ground().server()
    await fill(server, "a", 30)
    kept = server.ws.files._kept
    sizes = [len(data) for _, data in kept.items()]
    assert sum(sizes) == kept.size_bytes <= BYTES_MAX
    assert len(sizes) >= 3


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_many_tables_with_large_metadata_fill_no_memory(codec):
    @story
    async def told() -> None:
        server = Ground().server()
        await fill(server, "abcdefghij", 2, **{"write.metadata.compression-codec": codec})
        for name in "abcdefghij":
            assert (await server.properties(name))["n"] == "1"
        known = server.catalog.tables._bases._known
        sizes = [len(str(base.metadata.document)) for _, base in known.items()]
        assert known.size_bytes <= BYTES_MAX
        assert sum(sizes) == pytest.approx(known.size_bytes, rel=0.1)

    told()


def test_a_packed_file_says_how_large_it_is():
    data = gzip.compress(FILLING.encode())
    assert plain_size(data, "a.gz.metadata.json") == len(FILLING)
    assert plain_size(data, "a.metadata.json") == len(data)
    assert plain_size(b"", "a.gz.metadata.json") == 0
