"""What a process remembers of its tables is bounded by named limits, however many tables there are."""

import pytest

from arco.catalog import bases as bases_module
from arco.catalog import metadata_files
from arco.kernel.limits import ANSWERS_KEPT_BYTES_MAX, METADATA_CACHE_BYTES_MAX, METADATA_CACHE_FILES_MAX
from arco.surface.http.kept_answers import KeptAnswers

from .ground import Ground, story

TABLES = 10_000


@story
async def test_metadata_files_are_remembered_within_files_and_bytes() -> None:
    files = Ground().server().ws.files
    for number in range(METADATA_CACHE_FILES_MAX + 100):
        await files.write(f"file:///lake/t/w/data/t{number}/metadata/f.metadata.json", b"x")
    assert len(list(files._kept.items())) == METADATA_CACHE_FILES_MAX == files._kept.size_bytes
    large = b"x" * (METADATA_CACHE_BYTES_MAX // 8)
    for number in range(20):
        location = f"file:///lake/t/w/data/l{number}/metadata/f.metadata.json"
        await files.write(location, large)
        assert await files.read(location) == large
    assert sum(len(data) for _, data in files._kept.items()) == files._kept.size_bytes <= METADATA_CACHE_BYTES_MAX


def test_answers_are_kept_within_their_bytes() -> None:
    kept = KeptAnswers()
    body = b"x" * 20_000
    for number in range(TABLES):
        kept.response(f"t{number}", lambda: body, {})
    assert sum(len(one) for _, one in kept._kept.items()) == kept.size_bytes <= ANSWERS_KEPT_BYTES_MAX
    assert len(list(kept._kept.items())) == ANSWERS_KEPT_BYTES_MAX // len(body)


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
        assert len(list(server.catalog.table_commits.bases._known.items())) == 8
        assert len(list(server.ws.files._kept.items())) == 4

    told()
