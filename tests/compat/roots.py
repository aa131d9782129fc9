"""Stored roots, copied and opened: what the tests of this folder share."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Commit, decode_commit
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import CommitId
from arco.ledger.receipts import Receipt, Source
from arco.storage.keys import CatalogCommitKey, Head, HeadKey, parse
from arco.storage.local import LocalStore
from tests.compat.make import HERE, Beside
from tests.compat.story import BASE_URI, SCOPE, SHOP, Asked
from tests.stand_ins.hand_clock import HandClock

STORED = sorted(path.name for path in HERE.glob("v*") if path.is_dir())


@dataclass(frozen=True, slots=True)
class Root:
    """A copy of a root, to be opened and changed."""

    folder: Path
    beside: Beside

    def asked(self, what: str) -> Asked:
        return next(one for one in self.beside.asked if one.what == what)

    def names(self) -> list[str]:
        """The names of its objects."""
        paths = (path.relative_to(self.folder) for path in sorted(self.folder.rglob("*")) if path.is_file())
        return [path.as_posix() for path in paths if path.parts[0] != ".arco"]


@asynccontextmanager
async def opened(root: Root) -> AsyncIterator[Catalog]:
    """A process that knows nothing but the root."""
    clock, entropy = HandClock(root.beside.at_ms + 1000), SeededEntropy("reader")
    store = LocalStore(str(root.folder), clock, entropy)
    catalog = Catalog.open(store, BASE_URI, SCOPE, clock, entropy)
    try:
        yield catalog
        await catalog.parts.afterwards.settle()
    finally:
        await store.close()


def with_catalog(root: Root, work: Callable[[Catalog], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with opened(root) as catalog:
            return await work(catalog)

    return asyncio.run(run())


def key_of(asked: Asked) -> RequestKey:
    """The key that the same request has when it is sent again: its hash must come out as it did then."""
    return RequestKey(asked.key, asked.operation, request_hash(asked.body))


async def commit_again(catalog: Catalog, asked: Asked) -> str:
    request = requests.parse_commit_table(asked.body)
    return (await catalog.table_commits.commit(SHOP, "orders", request, key_of(asked), Source())).location


async def the_marker(catalog: Catalog, asked: Asked) -> Any:
    held = await catalog.parts.markers.object(key_of(asked)).read()
    assert held is not None
    return held.value


def chain(root: Root) -> list[Commit]:
    """All commits, newest first, as the chain names them. The hash covers the bytes as they are stored."""
    head = json.loads((root.folder / str(HeadKey(SCOPE, Head.CATALOG))).read_text())
    found: list[Commit] = []
    place, expected = head["last_commit_id"], head["last_commit_hash"]
    while place is not None:
        key = str(CatalogCommitKey(SCOPE, CommitId(place)))
        data = (root.folder / key).read_bytes()
        if fingerprint("catalog commit", data) != expected:
            raise CorruptObject(f"{key} is not the commit that its successor names")
        found.append(decode_commit(data, key))
        place, expected = found[-1].previous_id, found[-1].previous_hash
    return found


def receipts_of(root: Root, name: str) -> list[int]:
    """The commit numbers of a table that have a committed receipt."""
    found = []
    for path in root.folder.rglob("committed/*.json"):
        receipt = msgspec.json.decode(path.read_bytes(), type=Receipt)
        assert str(parse(path.relative_to(root.folder).as_posix())) == path.relative_to(root.folder).as_posix()
        if f"/{name}-{receipt.table_uuid}/" in receipt.commit.metadata_location:
            found.append(receipt.commit.commit_number)
    return sorted(found)


def only_file(root: Root, part: str) -> Path:
    (found,) = (root.folder / name for name in root.names() if part in name)
    return found
