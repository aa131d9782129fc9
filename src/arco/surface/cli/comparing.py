"""`arco diff`: which two things are meant, and what differs between them. What is not said is listed, with what to type.

What must never enter: how differences are printed, which is in `printing_diffs.py`.
"""

import re
from dataclasses import dataclass

from arco.fold.heads import Heads
from arco.fold.manifests import RootManifest
from arco.kernel.errors import BeyondReach, InvalidInput
from arco.kernel.ids import clip
from arco.read.diff_schemas import schema_diff
from arco.read.diff_snapshots import snapshot_diff
from arco.read.diff_versions import version_diff
from arco.read.library import CURRENT, Binding
from arco.read.pages import Window
from arco.read.partitions import partitions, versions
from arco.read.schemas import schema_history
from arco.surface.cli.asking import Asked, asking, is_snapshot, state_named
from arco.surface.cli.flags import Where
from arco.surface.cli.partition_spelling import spelled_key
from arco.surface.cli.printing import print_json
from arco.surface.cli.printing_diffs import (
    print_schema_diff,
    print_schemas,
    print_snapshot_diff,
    print_snapshots,
    print_version_diff,
    print_versions,
)

_SNAPSHOTS_LISTED = 10
_WAYS = "arco diff A B compares snapshots, arco diff NAME --versions A B versions, arco diff NAME --schemas A B schemas"


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Two states by their ids or times; none means a list, one means what changed since."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfAsset:
    """Two versions or two schemas of an asset; no pair means a list."""

    name: str
    pair: tuple[str, str] | None
    of_schemas: bool
    partition: str | None = None


Wanted = Snapshots | OfAsset


def wanted(words: list[str], partition: str | None, *, versions: bool, schemas: bool) -> Wanted:
    """What the words and flags mean together."""
    if versions and schemas:
        raise InvalidInput("--versions and --schemas exclude each other", hint=_WAYS)
    if versions or schemas:
        if len(words) not in {1, 3}:
            flag = "--versions" if versions else "--schemas"
            raise InvalidInput(f"{flag} takes a name, and two of them or none", hint=f"arco diff NAME {flag} lists them")
        if schemas and partition is not None:
            raise InvalidInput("a schema is of the whole table", hint="leave --partition out")
        pair = (words[1], words[2]) if len(words) == 3 else None
        return OfAsset(words[0], pair, schemas, partition)
    if len(words) > 2:
        raise InvalidInput("a comparison is of two things", hint=_WAYS)
    for word in words:
        if not is_snapshot(word) and not re.match(r"\d{4}-", word):
            way = f"arco diff {word} --versions lists its versions, --schemas its schemas"
            raise InvalidInput(f"{clip(word)!r} is no id of a snapshot and no time", hint=f"if it is an asset, {way}")
    if partition is not None:
        raise InvalidInput("--partition goes with --versions", hint="arco diff NAME --versions --partition KEY")
    return Snapshots(tuple(words))


async def show_diff(where: Where, binding: Binding, wanted: Wanted, *, limit: int, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.need_state()
        match wanted:
            case Snapshots(words):
                await _snapshots(asked, words, limit, json=json)
            case OfAsset(of_schemas=True):
                await _schemas(asked, wanted, json=json)
            case OfAsset():
                await _versions(asked, wanted, limit, json=json)
    return True


async def _snapshots(asked: Asked, words: tuple[str, ...], limit: int, *, json: bool) -> None:
    if not words:
        listed = await _newest(asked.heads)
        if json:
            plain = [
                {"snapshot": one.snapshot, "published_ms": one.published_ms, "sequence": one.sequence} for one in listed
            ]
            print_json({"snapshots": plain})
        else:
            print_snapshots(listed)
        return
    if len(words) == 2 and asked.binding != CURRENT:
        raise InvalidInput("two snapshots are named already", hint="name one of them, or leave the other flags out")
    before = (await asked.library.open(state_named(words[0]))).reader
    after = (await asked.library.open(state_named(words[1]))).reader if len(words) == 2 else asked.reader
    found = await snapshot_diff(before, after, limit=limit)
    if json:
        print_json(found)
    else:
        print_snapshot_diff(found, before.cut, after.cut)


async def _newest(heads: Heads) -> list[RootManifest]:
    """The last snapshots, newest first, as far as they are still there."""
    found: list[RootManifest] = []
    at = (await heads.read_root()).manifest
    while at is not None and len(found) < _SNAPSHOTS_LISTED:
        found.append(at)
        try:
            at = None if at.previous is None else await heads.root_manifest(at.previous)
        except BeyondReach:
            break
    return found


async def _versions(asked: Asked, wanted: OfAsset, limit: int, *, json: bool) -> None:
    key = await _one_partition(asked, wanted)
    if wanted.pair is None:
        history = await versions(asked.reader, wanted.name, key)
        if json:
            print_json(history)
        else:
            print_versions(history, limit)
        return
    found = await version_diff(asked.reader, wanted.name, key, *wanted.pair)
    if json:
        print_json(found)
    else:
        print_version_diff(found)


async def _one_partition(asked: Asked, wanted: OfAsset) -> str:
    """The partition that is named; an asset that has only one needs no name for it."""
    if wanted.partition is not None:
        return wanted.partition
    page = await partitions(asked.reader, wanted.name, Window(2))
    if len(page.items) > 1:
        example = spelled_key(page.items[0].partition_key)
        raise InvalidInput(
            f"{wanted.name} has more than one partition, each with versions of its own",
            hint=f"add --partition {example}; arco assets {wanted.name} --partitions lists them",
        )
    return page.items[0].partition_key if page.items else ""


async def _schemas(asked: Asked, wanted: OfAsset, *, json: bool) -> None:
    if wanted.pair is None:
        history = await schema_history(asked.reader, wanted.name)
        if json:
            print_json(history)
        else:
            print_schemas(history)
        return
    found = await schema_diff(asked.reader, wanted.name, *wanted.pair)
    if json:
        print_json(found)
    else:
        print_schema_diff(found)
