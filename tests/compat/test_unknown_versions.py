"""A document of a version that is not known is refused, never guessed at."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from arco.catalog.catalog import Catalog
from arco.kernel.errors import UnknownFormat
from arco.kernel.ids import HolderId, TableUuid, UlidSource
from arco.storage.keys import Head, HeadKey, LeaseKey, PointerKey, Word
from arco.storage.lease import Lease
from tests.compat.roots import Root, commit_again, key_of, only_file, with_catalog
from tests.compat.story import SCOPE, SHOP


def from_the_future(path: Path) -> None:
    document = json.loads(path.read_text())
    assert document["format_version"] == 1
    path.write_text(json.dumps(document | {"format_version": 99}))


async def use_manifest(catalog: Catalog, root: Root) -> None:
    from_the_future(root.folder / str(HeadKey(SCOPE, Head.CATALOG)))
    await catalog.parts.tier1.current()


async def use_pointer(catalog: Catalog, root: Root) -> None:
    uuid = (await catalog.parts.tier1.current()).names.entries[SHOP, "orders"].uuid
    from_the_future(root.folder / str(PointerKey(SCOPE, TableUuid(uuid))))
    await catalog.tables.load(SHOP, "orders")


async def use_marker(catalog: Catalog, root: Root) -> None:
    asked = root.asked("append")
    from_the_future(only_file(root, f"/{key_of(asked).hash}.json"))
    await commit_again(catalog, asked)


async def use_lease(catalog: Catalog, root: Root) -> None:
    parts = catalog.parts
    name = str(LeaseKey(SCOPE, Word("catalog")))
    from_the_future(root.folder / name)
    holder = HolderId(UlidSource(parts.clock, parts.entropy).next())
    await Lease(parts.tier1.store, name, holder, parts.clock, parts.entropy, ttl_s=1).try_acquire()


@pytest.mark.parametrize("use", [use_manifest, use_pointer, use_marker, use_lease])
def test_a_version_that_is_not_known_is_refused(root: Root, use: Callable[[Catalog, Root], Awaitable[None]]) -> None:
    with pytest.raises(UnknownFormat):
        with_catalog(root, lambda catalog: use(catalog, root))
