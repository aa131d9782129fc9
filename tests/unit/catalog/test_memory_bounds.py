"""What a process remembers of its tables is bounded by named limits, however many tables there are."""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest

from arco.catalog import bases as bases_module
from arco.catalog import metadata_files
from arco.catalog.locations import Locations, normal_uri
from arco.iceberg.semantics import can_transform, leaf
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import ANSWERS_KEPT_BYTES_MAX, METADATA_CACHE_BYTES_MAX, METADATA_CACHE_FILES_MAX
from arco.storage.port import objection
from arco.surface.http import kept_answers
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


def test_small_answers_are_bounded_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "ANSWERS_KEPT_MAX", 100)
    kept = KeptAnswers()
    for number in range(200):
        kept.response(f"t{number}", lambda: b"{}", {})
    assert len(kept._kept) == 100


LONG_TEXTS: dict[str, Callable[[str], object]] = {
    "a location": normal_uri,
    "a location in the root": lambda text: Locations("s3://b").key(f"s3://b/{text}"),
    "an object's name": objection,
    "a type": leaf,
    "a type's transform": lambda text: can_transform("identity", text),
    "a transform": lambda text: can_transform(text, "string"),
}


@pytest.mark.parametrize("what", LONG_TEXTS)
def test_long_texts_of_clients_are_not_kept(what: str) -> None:
    """A cache of texts bounds how many they are: of a megabyte each they would be gigabytes, all of refused requests."""
    ask, size = LONG_TEXTS[what], 1_000_000
    tracemalloc.start()
    try:
        for number in range(20):
            with suppress(InvalidInput):
                ask(f"s3://b/{what} {number}{'x' * size}")
        assert tracemalloc.get_traced_memory()[0] < 3 * size
    finally:
        tracemalloc.stop()


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
