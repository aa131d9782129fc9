"""Who else writes in the transaction model: writers of one table, the reconciler, the collector of records, and time.

Every function yields the storage steps that are possible for one actor. Waiting is having no step. Readers and invariants are not
here.
"""

from collections.abc import Iterator

from specs.explorer import Shared, Step
from specs.transaction_places import owed
from specs.transaction_world import COLLECTABLE, COUNTS, DROP, FREE, WRITER, At, World, written


class Writer:
    """A commit to one table, or its drop, outside of any transaction."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self.name = name
        self._mark = DROP if name == "dropper" else WRITER

    def first(self) -> At:
        return At(0, "writer", entries=self._world.no_entries)

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        match at.place:
            case "writer":
                for table in self._world.tables if at.table == FREE else (at.table,):
                    yield from self._read(shared, at._replace(held=1 << table, table=table))
            case "writer ask":
                yield from self._ask(shared, at)
            case "writer kill":
                index, back = self._world.records[at.extra], at._replace(held=0, place="writer", extra=FREE)
                action = f"txn.sent_back transaction {self._world.keys[at.extra] + 1}"
                yield from written(action, index, self._world.sent_back(shared, at.extra), back, back)
            case "writer owe":
                yield owed(self._world, shared, at, "writer ready")
            case "writer ready":
                yield from self._swing(shared, at)
            case _:
                pass  # it has come to its end

    def _end(self) -> At:
        return At(0, "end", entries=self._world.no_entries)

    def _read(self, shared: Shared, at: At) -> Iterator[Step]:
        chain, pending = shared[at.table]
        action = f"reads pointer {at.table + 1}"
        if self._mark in chain:
            told = (self._world.writer_told, shared[self._world.writer_told] | self._bit(at.table))
            yield Step(f"{action}: its commit is there", self._end(), (told,))
        elif DROP in chain or (self._world.is_name(at.table) and chain):
            yield Step(f"{action}: refused", self._end())
        elif pending and self._resolves(at):
            yield Step(f"{action}: something is pending", at._replace(place="writer ask"))
        else:
            yield Step(action, self._usable(shared, at))

    def _resolves(self, at: At) -> bool:
        guard = "effective_names" if self._world.is_name(at.table) else "writer_resolves"
        return self._world.on("drop_resolves" if self._mark == DROP else guard)

    def _bit(self, table: int) -> int:
        return 1 << 2 * table + (self._mark == DROP)

    def _usable(self, shared: Shared, at: At) -> At:
        chain = self._world.based(shared, at.table, counts=at.extra == COUNTS)
        if self._world.is_name(at.table) and chain:
            return self._end()
        owes = self._world.case.receipts and self._world.on("receipts_before_prepare") and chain
        return at._replace(place="writer owe" if owes else "writer ready")

    def _ask(self, shared: Shared, at: At) -> Iterator[Step]:
        number = shared[at.table][1][0]
        action = f"reads the record of transaction {self._world.keys[number] + 1}"
        if self._world.counts(shared, at.table):
            yield Step(f"{action}: it counts", self._usable(shared, at._replace(extra=COUNTS)))
        elif not self._world.may_decide(shared, at.table):
            yield Step(f"{action}: the pending does not count", self._usable(shared, at))
        elif self._world.case.stale:
            held = 1 << self._world.records[number]
            yield Step(f"{action}: preparing, stale", at._replace(held=held, place="writer kill", extra=number))
        if not self._world.on("fail_closed"):
            yield Step(f"{action}: it cannot be read", self._usable(shared, at), lost=True)

    def _swing(self, shared: Shared, at: At) -> Iterator[Step]:
        """What counts of the pending that is there becomes part of the chain, what does not is gone, by the same write."""
        action = "drop.tombstone_written" if self._mark == DROP else "commit.swung"
        value = ((*self._world.based(shared, at.table, counts=at.extra == COUNTS), self._mark), ())
        told = (self._world.writer_told, shared[self._world.writer_told] | self._bit(at.table))
        silent = at._replace(held=0, place="writer", extra=FREE)
        yield from written(f"{action} pointer {at.table + 1}", at.table, value, self._end(), silent, told)


class Reconciler:
    """Sends back what is stale, and writes pointers as they count. It remembers nothing between tables."""

    name = "reconciler"

    def __init__(self, world: World) -> None:
        self._world = world

    def first(self) -> At:
        return At(0, "reconciler", entries=self._world.no_entries)

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        match at.place:
            case "reconciler":
                for table in self._world.tables:
                    if shared[table][1]:
                        ask = at._replace(held=1 << table, place="reconciler ask", table=table)
                        yield Step(f"reads pointer {table + 1}: something is pending", ask)
                for number, index in enumerate(self._world.records):
                    if shared[index] is not None and shared[index][0] == "P":
                        yield from self._stale(number)
            case "reconciler ask":
                yield from self._ask(shared, at)
            case "reconciler touch":
                value = (self._world.based(shared, at.table, counts=at.extra == COUNTS), ())
                what = "with" if at.extra == COUNTS else "without"
                action = f"txn.finalized pointer {at.table + 1}, {what} what was pending"
                yield from written(action, at.table, value, self.first(), self.first())
            case "reconciler kill":
                index = self._world.records[at.extra]
                action = f"txn.sent_back transaction {self._world.keys[at.extra] + 1}"
                yield from written(action, index, self._world.sent_back(shared, at.extra), self.first(), self.first())
            case _:
                raise AssertionError(at.place)

    def _ask(self, shared: Shared, at: At) -> Iterator[Step]:
        number = shared[at.table][1][0]
        action = f"reads the record of transaction {self._world.keys[number] + 1}"
        touch = at._replace(place="reconciler touch")
        if self._world.counts(shared, at.table):
            yield Step(f"{action}: it counts", touch._replace(extra=COUNTS))
        elif not self._world.may_decide(shared, at.table) or not self._world.on("record_before_pending"):
            yield Step(f"{action}: the pending does not count", touch)
        else:
            yield from self._stale(number)

    def _stale(self, number: int) -> Iterator[Step]:
        if self._world.case.stale and self._world.on("anyone_may_send_back"):
            kill = self.first()._replace(held=1 << self._world.records[number], place="reconciler kill", extra=number)
            yield Step(f"reads the record of transaction {self._world.keys[number] + 1}: preparing, stale", kill)


class Collector:
    """Deletes the records of keys that are long too old, once every pointer was seen without them."""

    name = "collector"

    def __init__(self, world: World) -> None:
        self._world = world

    def first(self) -> At:
        return At(0, "collector", entries=self._world.no_entries)

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        if at.place == "collector":
            for number, index in enumerate(self._world.records):
                if shared[self._world.age] == COLLECTABLE and shared[index] is not None and shared[index][0] in "CAW":
                    seen = (
                        self._world.no_entries
                        if self._world.on("references_looked_for")
                        else (0,) * len(self._world.tables)
                    )
                    yield Step(
                        "reads a record: nobody has worked on it for long",
                        at._replace(place="collecting", entries=seen, extra=number),
                    )
            return
        if FREE not in at.entries:
            yield Step("upkeep.deleted the record", self.first(), ((self._world.records[at.extra], ("G",)),))
            return
        for table in self._world.tables:
            if at.entries[table] == FREE:
                pending = shared[table][1]
                seen = (*at.entries[:table], 0, *at.entries[table + 1 :])
                after = self.first() if pending and pending[0] == at.extra else at._replace(entries=seen)
                yield Step(f"reads pointer {table + 1}", after)


class Time:
    """Keys grow old."""

    name = "time"

    def __init__(self, world: World) -> None:
        self._world = world

    def first(self) -> At:
        return At(0, "time", entries=self._world.no_entries)

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        if shared[self._world.age] < COLLECTABLE:
            says = ("the key is too old for requests", "the key's record may be collected")
            yield Step(says[shared[self._world.age]], at, ((self._world.age, shared[self._world.age] + 1),))
