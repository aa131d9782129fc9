"""Stored objects looked at again, some at a time: what every room that verifies its own objects shares.

A judge is given an object and raises what is wrong with it; a finding names the object. Others may write meanwhile: what was
listed and is gone was collected or moved, and is nobody's damage. At most VERIFY_READ_AHEAD_MAX objects, and few bytes more than
VERIFY_READ_BYTES_MAX, are held at once, however many there are. What must never enter: what any object means, and writing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from arco.kernel.errors import AskOperator, FixRequest, InvalidInput
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX, VERIFY_READ_BYTES_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import Codec, decoded
from arco.storage.findings import Progress, Report, nobody, way_out
from arco.storage.keys import Key, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Listed, Object, ObjectStore

Judge = Callable[[Any, Object], None]
"""Given a key and its object, which is text. Raises what is wrong with it."""

RESTORE = "restore it from a backup or a copy of the root"
_UNKNOWN_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a workspace: where its objects lie, and where what is found goes."""

    store: ObjectStore
    scope: Scope
    report: Report
    progress: Progress = nobody

    async def each(
        self,
        code: str,
        many: str,
        kinds: Mapping[type[Key], Judge],
        *folder: str,
        todo: str = RESTORE,
        wanted: Callable[[Any], bool] = lambda _: True,
    ) -> int:
        """Judge every object of some kinds in a folder whose key is wanted, and count it as one of many; how many were found to
        be damaged."""
        done = damaged = 0
        async for group in _groups(self._of_kinds(kinds, folder, wanted)):
            found = await asyncio.gather(*(self.store.get(listed.key) for listed, _ in group))
            for (_, key), one in zip(group, found, strict=True):
                if one is not None:
                    damaged += not self._judged(code, kinds[type(key)], key, one, todo)
            done += len(group)
            self.progress(many, done, done)
        self.report.count(many, done)
        return damaged

    async def one(self, code: str, many: str, key: Key, judge: Judge, todo: str = RESTORE) -> None:
        """Judge one object, if it is there."""
        found = await self.store.get(str(key))
        if found is not None:
            self.report.count(many)
            self._judged(code, judge, key, found, todo)

    async def _of_kinds(
        self, kinds: Mapping[type[Key], Judge], folder: tuple[str, ...], wanted: Callable[[Any], bool]
    ) -> AsyncIterator[tuple[Listed, Key]]:
        async for listed in walk(self.store, prefix_of(self.scope, "_catalog", *folder)):
            key = explained(listed.key)
            if key is not None and type(key) in kinds and wanted(key):
                yield listed, key

    def _judged(self, code: str, judge: Judge, key: Key, found: Object, todo: str) -> bool:
        try:
            judge(key, found)
            # Decoders step over what they do not know, whatever bytes are there: that all of it is text is looked at here.
            found.data.decode()
        except (UnicodeDecodeError, RecursionError) as error:
            self.find(code, found.info.key, f"it does not parse: {error}", todo)
            return False
        except (AskOperator, FixRequest) as error:
            self.find(code, found.info.key, error.message, way_out(error, todo))
            return False
        return True

    def find(self, code: str, name: str, message: str, todo: str = RESTORE) -> None:
        """Whatever the message says of it, the finding names the object. One that several looks meet is told once."""
        if not self.report.tells(code, name):
            self.report.find(code, name, message if name in message else f"{name}: {message}", todo)

    async def unknown(self) -> None:
        """Names that no kind of object explains. Whoever put them there, they harm nobody: they are told, and are no damage."""
        seen = strange = 0
        async for listed in walk(self.store, prefix_of(self.scope, "_catalog")):
            seen += 1
            if explained(listed.key) is None:
                strange += 1
                if strange <= _UNKNOWN_SHOWN_MAX:
                    self.report.note(f"unknown: {listed.key} is no object of Arco")
            self.progress("names", seen, seen)
        self.report.count("unknown", strange)
        if strange > _UNKNOWN_SHOWN_MAX:
            self.report.note(f"unknown: {strange - _UNKNOWN_SHOWN_MAX} more objects")


def readable(codec: Codec[Any]) -> Judge:
    """For documents that are swung, and say nothing of their own names."""

    def judge(key: Key, found: Object) -> None:
        decoded(found, codec, str(key))

    return judge


def explained(name: str) -> Key | None:
    """The key of a name, if Arco makes such names."""
    try:
        return parse(name)
    except InvalidInput:
        return None


async def _groups(listed: AsyncIterator[tuple[Listed, Key]]) -> AsyncIterator[list[tuple[Listed, Key]]]:
    """What is read at once: a few objects, or one that is large."""
    group: list[tuple[Listed, Key]] = []
    size_bytes = 0
    async for one in listed:
        if group and (len(group) >= VERIFY_READ_AHEAD_MAX or size_bytes + one[0].size_bytes > VERIFY_READ_BYTES_MAX):
            yield group
            group, size_bytes = [], 0
        group.append(one)
        size_bytes += one[0].size_bytes
    if group:
        yield group
