"""Who reads in the transaction model, where one moment is not enough to say what a reader sees.

Single reads need no actor: what counts is a function of the pointer and a record that is read after it, and the invariants look
at it in every state. Two readers see several moments: a client that asks again with an ETag, and a cut of all tables.
A reader writes nothing.
"""

from collections.abc import Iterator
from typing import Any

from specs.explorer import Shared, Step
from specs.transaction_world import At, World, named

OLDER = named("B", "a reader saw a transaction in one table, and afterwards not in the other")
MIXED = named("B", "a cut of several tables has one part of a transaction without the other")


class EtagReader:
    """Loads the last table, loads the first, and asks for the last again with the ETag it has."""

    name = "ETag reader"

    def __init__(self, world: World) -> None:
        self._world = world

    def first(self) -> At:
        return At(0, "load last", extra=((), (), False, None))

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        """`extra` is what is remembered: the ETag, what was seen with it, whether it was undecided; the pointer that was read."""
        if at.place == "end":
            return
        table = 0 if at.place == "load first" else self._world.tables[-1]
        view = at.extra[3]
        if view is None:
            yield from self._pointer(at, table, shared[table])
            return
        action = f"reads the record for pointer {table + 1}"
        chain, pending = view
        if self._world.counts(shared, table, pending):
            yield self._seen(at, (*chain, self._world.keys[pending[0]]), chain, action)
        else:
            yield self._seen(at, chain, chain, action)

    def _pointer(self, at: At, table: int, view: Any) -> Iterator[Step]:
        chain, pending = view
        action = f"reads pointer {table + 1}"
        etag, cached, undecided, _ = at.extra
        is_again = at.place == "load again"
        if is_again and not self._world.on("etag_is_effective") and etag == chain:
            yield self._seen(at, cached, chain, f"{action}: 304")
        elif is_again and pending and undecided and not self._world.on("undecided_not_cached"):
            yield self._seen(at, chain, chain, f"{action}: pending, remembered as undecided")
        elif pending:
            yield Step(f"{action}: something is pending", at._replace(extra=(*at.extra[:3], view)))
        else:
            yield self._seen(at, chain, chain, action)

    def _seen(self, at: At, chain: tuple[int, ...], raw: tuple[int, ...], action: str) -> Step:
        if at.place == "load last":
            etag = chain if self._world.on("etag_is_effective") else raw
            undecided = at.extra[3] is not None and chain == raw
            return Step(action, At(0, "load first", extra=(etag, chain, undecided, None)))
        if at.place == "load first":
            seen = sum(1 << key for key in set(self._world.keys) if key in chain)
            return Step(action, At(0, "load again", seen, extra=(*at.extra[:3], None)))
        missing = any(at.attempt >> key & 1 and key not in chain for key in set(self._world.keys))
        return Step(action, At(0, "end"), broken=OLDER if missing else "")


class CutReader:
    """Reads every table, all side by side, until two readings agree."""

    name = "cut reader"

    def __init__(self, world: World) -> None:
        self._world = world
        self._nothing = (None,) * len(world.tables)

    def first(self) -> At:
        return At(0, "cut", extra=((), self._nothing))

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        """`extra` is the reading before and this one: by table nothing, (chain, pending) that asks its record, or what it saw."""
        if at.place == "end":
            return
        before, now = at.extra
        for table in self._world.tables:
            if now[table] is None:
                chain, pending = shared[table]
                asks = pending and (self._world.on("cut_compares_what_counts") or not before)
                seen = shared[table] if asks else self._seen(chain, shared[table])
                yield self._read(at, table, seen, f"reads pointer {table + 1}")
            elif now[table][1]:
                chain, pending = now[table]
                counts = self._world.counts(shared, table, pending)
                seen = self._seen((*chain, self._world.keys[pending[0]]) if counts else chain, now[table])
                yield self._read(at, table, seen, f"reads the record for pointer {table + 1}")

    def _seen(self, chain: tuple[int, ...], stored: Any) -> tuple[Any, ...]:
        return (chain, ()) if self._world.on("cut_compares_what_counts") else (chain, (), stored)

    def _read(self, at: At, table: int, seen: tuple[Any, ...], action: str) -> Step:
        before, now = at.extra
        now = (*now[:table], seen, *now[table + 1 :])
        if any(one is None or one[1] for one in now):
            return Step(action, at._replace(extra=(before, now)))
        if not before and self._world.on("cut_reads_twice"):
            return Step(action, at._replace(extra=(now, self._nothing)))
        if before and not self._agree(before, now):
            again = at._replace(extra=(now, self._nothing))
            return Step(
                f"{action}: the readings differ", again if self._world.on("cut_compares_what_counts") else self.first()
            )
        return Step(f"{action}: has its cut", At(0, "end"), broken=MIXED if self._is_mixed(before or now) else "")

    def _agree(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
        compared = 0 if self._world.on("cut_compares_what_counts") else 2
        return [one[compared] for one in before] == [one[compared] for one in now]

    def _is_mixed(self, reading: tuple[Any, ...]) -> bool:
        chains = [one[0] for one in reading]
        return any(0 < sum(key in chain for chain in chains) < len(chains) for key in set(self._world.keys))
