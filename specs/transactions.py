"""The multi-table transaction as a model: one record decides, pointers carry what is pending.

The invariants are reported by their letters (`INVARIANTS`).
What an actor does is in `transaction_coordinator.py`, `transaction_actors.py` and `transaction_readers.py`; what is explored, and
how far, in `cases.py`.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from specs.explorer import Local, Model, Shared, Step, orders
from specs.transaction_actors import Collector, Reconciler, Time, Writer
from specs.transaction_coordinator import Coordinator
from specs.transaction_places import PASSING, PASSING_WITHOUT_RECEIPTS, dropped
from specs.transaction_readers import CutReader, EtagReader
from specs.transaction_world import COLLECTABLE, DROP, FAILED, FREE, NOT_DONE, WRITER, At, Case, World, named


class Actor(Protocol):
    @property
    def name(self) -> str: ...
    def first(self) -> At: ...
    def steps(self, shared: Shared, at: At) -> Iterable[Step]: ...


OTHERS: dict[str, Callable[[World], Actor]] = {
    "reconciler": Reconciler,
    "collector": Collector,
    "time": Time,
    "ETag reader": EtagReader,
    "cut reader": CutReader,
}


class Transactions(Model):
    name = "transactions"

    def __init__(self, case: Case) -> None:
        self._world = World(case)
        self._reconciler = Reconciler(self._world)
        actors = [*self._coordinators(), *(self._other(name) for name in case.others)]
        self.roles = tuple(actor.name for actor in actors)
        self._actors: dict[str, Actor] = {actor.name: actor for actor in actors}
        self._reads_in_order = any("reader" in name for name in case.others)

    def _coordinators(self) -> Iterable[Coordinator]:
        for record, key in enumerate(self._world.keys):
            for _ in range(self._world.case.seats if self._world.on("one_record_per_key") else 1):
                one = Coordinator(self._world, key, record)
                if not self._world.on("one_record_per_key"):
                    one.name += f", record {record + 1}"
                yield one

    def _other(self, name: str) -> Actor:
        return OTHERS[name](self._world) if name in OTHERS else Writer(self._world, name)

    def initial(self) -> tuple[Shared, tuple[Local, ...]]:
        return self._world.start(), tuple(self._actors[role].first() for role in self.roles)

    def steps(self, role: str, shared: Shared, local: Local) -> Iterable[Step]:
        for step in self._actors[role].steps(shared, At(*local)):
            yield step._replace(broken=step.broken or self._undecided_again(shared, step))

    def dropped(self, local: Local) -> Local:
        return dropped(self._world, At(*local))

    def is_passing(self, local: Local) -> bool:
        return At(*local).place in (PASSING if self._world.case.receipts else PASSING_WITHOUT_RECEIPTS)

    # Invariants.

    def _undecided_again(self, shared: Shared, step: Step) -> str:
        for index, value in step.writes:
            if index in self._world.records and shared[index] is not None and shared[index][0] in "CA" and value[0] != "G":
                return named("A", f"a decided record becomes {value[0]}")
            if index in self._world.tables and value[0][: len(shared[index][0])] != shared[index][0]:
                return named("C", "a commit is gone from a table")
        return ""

    def broken(self, shared: Shared) -> str:
        chains = [self._world.effective(shared, table) for table in self._world.tables]
        for check in (self._effects, self._decisions, self._answers, self._receipts):
            if broken := check(shared, chains):
                return broken
        return self._unfinishable(shared)

    def _effects(self, _shared: Shared, chains: list[tuple[int, ...]]) -> str:
        for key in set(self._world.keys):
            counts = [chain.count(key) for chain in chains]
            if max(counts) > 1:
                return named("I", f"transaction {key + 1} is applied twice")
            if min(counts) != max(counts):
                return named("B", f"transaction {key + 1} is half visible")
        both = [tuple(key for key in chain if key < WRITER) for chain in chains]
        if len({keys for keys in both if len(keys) > 1}) > 1:
            return named("S", "two tables have them in different orders")
        if any(chain.count(WRITER) > 1 for chain in chains):
            return named("I", "the commit of the writer is applied twice")
        if self._world.case.creates and len(chains[-1]) > 1:
            return named("I", "one name was created twice")
        return ""

    def _decisions(self, shared: Shared, chains: list[tuple[int, ...]]) -> str:
        if shared[self._world.age] == COLLECTABLE or not self._world.on("one_record_per_key"):
            return ""
        for key, index in enumerate(self._world.records):
            status = shared[index][0] if shared[index] else ""
            is_seen = any(key in chain for chain in chains)
            if status == "A" and is_seen:
                return named("E", f"transaction {key + 1} is aborted and visible")
            if status != "C" and is_seen:
                return named("C", f"transaction {key + 1} is visible and not decided")
            if status == "C" and not is_seen:
                return named("D", f"transaction {key + 1} is decided and invisible")
        return ""

    def _answers(self, shared: Shared, chains: list[tuple[int, ...]]) -> str:
        for key, index in enumerate(self._world.told):
            told = shared[index] & NOT_DONE - 1
            is_seen = any(key in chain for chain in chains)
            if shared[index] & NOT_DONE and is_seen:
                return named("K", f"transaction {key + 1} was told as not done, and is visible")
            if told & FAILED and is_seen:
                return named("E", f"transaction {key + 1} was told as failed and is visible")
            if told > FAILED and not is_seen:
                return named(
                    "G" if shared[self._world.age] == COLLECTABLE else "D",
                    f"transaction {key + 1} was acknowledged and is lost",
                )
            if told & told - 1:
                return named("H", f"transaction {key + 1} was told two outcomes")
        for table, chain in enumerate(chains):
            told = shared[self._world.writer_told] >> 2 * table
            if (told & 1 and WRITER not in chain) or (told & 2 and DROP not in chain):
                return named("D", "an acknowledged commit is lost")
        return ""

    def _receipts(self, shared: Shared, _chains: list[tuple[int, ...]]) -> str:
        for table, index in zip(self._world.tables, self._world.receipts, strict=True):
            chain, pending = shared[table]
            needed = (1 << len(chain) - (not pending)) - 1 if chain else 0
            if self._world.case.receipts and shared[index] & needed != needed:
                return named("R", f"table {table + 1} went on without the receipt of its last commit")
        return ""

    def _unfinishable(self, shared: Shared) -> str:
        """Everybody else stops for ever: the reconciler alone must bring every table and record to an end."""
        if not self._world.case.stale:
            return ""
        at, after = self._reconciler.first(), shared
        while step := next(iter(self._reconciler.steps(after, at)), None):
            changed = list(after)
            for index, value in step.writes:
                changed[index] = value
            at, after = At(*step.local), tuple(changed)
        undecided = any(after[index] and after[index][0] == "P" for index in self._world.records)
        if undecided or any(after[table][1] for table in self._world.tables):
            return named("F", "nobody can finish what has stalled")
        return ""

    def stuck(self, shared: Shared, _locals: tuple[Local, ...]) -> str:
        if any(shared[index] and shared[index][0] == "C" for index in self._world.records):
            return ""
        return "" if self._world.case.stale else "progress: everybody has come to an end, and no transaction is committed"

    # Tables are interchangeable, unless one is a name or a reader has an order.

    def exchanges(self) -> tuple[tuple[int, ...], ...]:
        if self._world.case.creates or self._reads_in_order:
            return ()
        return orders(self._world.case.tables)

    def exchanged(self, order: tuple[int, ...], shared: Shared) -> Shared:
        world = self._world
        turned = list(shared)
        for to, table in enumerate(order):
            turned[to] = shared[table]
            turned[world.receipts[to]] = shared[world.receipts[table]]
        for index in world.records:
            if shared[index] is not None and shared[index][0] == "C":
                turned[index] = ("C", shared[index][1], tuple(shared[index][2][table] for table in order))
        told = shared[world.writer_told]
        turned[world.writer_told] = sum((told >> 2 * table & 3) << 2 * to for to, table in enumerate(order))
        return tuple(turned)

    def exchanged_local(self, order: tuple[int, ...], local: Local) -> Local:
        at = At(*local)
        kept = at.held >> len(order) << len(order)
        held = kept | sum((at.held >> table & 1) << to for to, table in enumerate(order))
        return at._replace(
            held=held,
            entries=tuple(at.entries[table] for table in order),
            table=order.index(at.table) if at.table != FREE else FREE,
        )
