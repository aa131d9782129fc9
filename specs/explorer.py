"""An explorer of all states of a small model, breadth first, so that the first failure found is a shortest one.

A model is some shared objects and some actors. An actor makes one storage step at a time; between two steps of one actor anything
may happen, also nothing ever again: whoever stops for ever is simply not chosen. A step that costs a lost reply is taken only
while there are replies left to lose.

Objects have no version numbers. An actor *holds* an object from the moment that it read or wrote it until somebody else writes
it, and a conditional write lands exactly while it is held. So versions never repeat, and states that differ by numbers alone are
one.

States are made of small integers: every value is kept once, every step of an actor is computed once for what it depends on.
Actors that play the same part, and tables, are interchangeable; of states that differ only by such an exchange one is explored.
No rule of a protocol enters this file.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from time import process_time
from typing import Any, NamedTuple

Shared = tuple[Any, ...]
Local = tuple[Any, ...]
State = tuple[int, ...]

THEN = "\n"  # between the actions of fused steps
HELD = 0  # the first field of every local state: a bit for every object that is held


class Step(NamedTuple):
    """One storage step: what the actor is like after it, which objects it wrote, and whether its reply was lost."""

    action: str
    local: Local
    writes: tuple[tuple[int, Any], ...] = ()
    lost: bool = False
    broken: str = ""


class Model(ABC):
    """What a model says about itself. `roles` has a part for every actor; actors with equal parts are interchangeable."""

    name = ""
    roles: tuple[str, ...] = ()

    @abstractmethod
    def initial(self) -> tuple[Shared, tuple[Local, ...]]: ...

    @abstractmethod
    def steps(self, role: str, shared: Shared, local: Local) -> Iterable[Step]: ...

    @abstractmethod
    def broken(self, shared: Shared) -> str:
        """The invariant that does not hold, or nothing. What actors were told belongs to the shared objects."""

    def dropped(self, local: Local) -> Local:
        """A local state after it lost something it held: a write that can only fail now has failed."""
        return local

    def is_passing(self, _local: Local) -> bool:
        """Whether this actor has only read what it holds: whatever takes that from it brings it back to where it was."""
        return False

    def stuck(self, _shared: Shared, _locals: tuple[Local, ...]) -> str:
        """What is wrong with a state in which nobody can make a step, or nothing."""
        return ""

    def exchanges(self) -> tuple[tuple[int, ...], ...]:
        """Permutations of tables (or whatever else) under which the model looks the same, without the identity."""
        return ()

    def exchanged(self, _order: tuple[int, ...], shared: Shared) -> Shared:
        return shared

    def exchanged_local(self, _order: tuple[int, ...], local: Local) -> Local:
        return local


@dataclass(frozen=True)
class Result:
    """What an exploration found. `depth` is the number of steps of the longest shortest way, or of the failure.

    `seconds` are of the processor.
    `reached` are the values that the shared objects had together; of those that an exchange makes equal, one or more.
    """

    states: int
    depth: int
    seconds: float
    whole: bool
    broken: str = ""
    trace: tuple[str, ...] = ()
    reached: frozenset[Shared] = frozenset()


def orders(count: int) -> tuple[tuple[int, ...], ...]:
    """Every permutation of `count` things except the one that leaves them where they are."""
    return tuple(permutations(range(count)))[1:]


class Numbers:
    """Values, each known by a small number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class _Move(NamedTuple):
    shared: int
    local: int
    written: int
    lost: int
    broken: str
    action: str


class _Machine:
    """A model in small integers. A state is (shared, local of every actor…, replies that may still be lost)."""

    def __init__(self, model: Model, *, fused: bool) -> None:
        self.model = model
        self._fused = fused
        self.shared = Numbers()
        self.local = Numbers()
        self._roles = [list(dict.fromkeys(model.roles)).index(role) for role in model.roles]
        self._moves: list[dict[tuple[int, int], tuple[_Move, ...]]] = [{} for _ in set(model.roles)]
        self._drops: dict[tuple[int, int], int] = {}
        self._verdicts: dict[int, str] = {}
        # Actors of one part, each compared with each that comes after it: enough to sort them.
        self._pairs = [
            (one + 1, other + 1)
            for one, role in enumerate(model.roles)
            for other in range(one + 1, len(model.roles))
            if model.roles[other] == role
        ]
        self._orders = model.exchanges()
        self._exchanged: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}) for _ in self._orders]

    def start(self, replies_lost_max: int) -> State:
        shared, locals_ = self.model.initial()
        return (self.shared.of(shared), *(self.local.of(one) for one in locals_), replies_lost_max)

    def moves(self, actor: int, state: State) -> tuple[_Move, ...]:
        role = self._roles[actor]
        key = (state[0], state[actor + 1])
        found = self._moves[role].get(key)
        if found is None:
            found = self._moves[role][key] = tuple(self._computed(actor, key))
        return found

    def _computed(self, actor: int, key: tuple[int, int]) -> Iterator[_Move]:
        shared = self.shared.values[key[0]]
        for step in self._steps(self.model.roles[actor], shared, self.local.values[key[1]]):
            after = list(shared)
            written = 0
            for index, value in step.writes:
                after[index] = value
                written |= 1 << index
            yield _Move(
                self.shared.of(tuple(after)), self.local.of(step.local), written, int(step.lost), step.broken, step.action
            )

    def _steps(self, role: str, shared: Shared, local: Local) -> Iterator[Step]:
        for step in self.model.steps(role, shared, local):
            if not (self._fused and self.model.is_passing(step.local)):
                yield step
                continue
            for further in self._steps(role, shared, step.local):
                yield further._replace(action=f"{step.action}{THEN}{further.action}")

    def after(self, state: State, actor: int, move: _Move) -> State:
        written = move.written
        if not written:
            return (move.shared, *state[1 : actor + 1], move.local, *state[actor + 2 : -1], state[-1] - move.lost)
        after = [self._drop(local, written) for local in state[1:-1]]
        after[actor] = move.local
        return (move.shared, *after, state[-1] - move.lost)

    def _drop(self, number: int, written: int) -> int:
        key = (number, written)
        found = self._drops.get(key)
        if found is None:
            local = self.local.values[number]
            kept = local[HELD] & ~written
            found = number if kept == local[HELD] else self.local.of(self.model.dropped((kept, *local[1:])))
            self._drops[key] = found
        return found

    def broken(self, shared: int) -> str:
        found = self._verdicts.get(shared)
        if found is None:
            found = self._verdicts[shared] = self.model.broken(self.shared.values[shared])
        return found

    def stuck(self, state: State) -> str:
        return self.model.stuck(self.shared.values[state[0]], tuple(self.local.values[one] for one in state[1:-1]))

    def canonical(self, state: State) -> State:
        """The one of all states that differ from this by an exchange. This runs for every step: hence its form."""
        best = list(state)
        self._sort(best)
        for order, (shared, local) in zip(self._orders, self._exchanged, strict=True):
            try:
                turned = [shared[state[0]], *map(local.__getitem__, state[1:-1]), state[-1]]
            except KeyError:
                turned = self._exchange(order, shared, local, state)
            self._sort(turned)
            best = min(best, turned)
        return tuple(best)

    def _exchange(self, order: tuple[int, ...], shared: dict[int, int], local: dict[int, int], state: State) -> list[int]:
        if state[0] not in shared:
            shared[state[0]] = self.shared.of(self.model.exchanged(order, self.shared.values[state[0]]))
        for number in state[1:-1]:
            if number not in local:
                local[number] = self.local.of(self.model.exchanged_local(order, self.local.values[number]))
        return [shared[state[0]], *(local[number] for number in state[1:-1]), state[-1]]

    def _sort(self, state: list[int]) -> None:
        for one, other in self._pairs:
            if state[one] > state[other]:
                state[one], state[other] = state[other], state[one]


class _Search:
    """One breadth-first search. `seen` remembers where every state was first come from."""

    def __init__(self, model: Model, replies_lost_max: int, *, fused: bool) -> None:
        self.machine = _Machine(model, fused=fused)
        self._actors = range(len(model.roles))
        self.first = self.machine.canonical(self.machine.start(replies_lost_max))
        self.seen: dict[State, State | None] = {self.first: None}
        self.edges: dict[State, list[State]] = {}

    def successors(self, state: State) -> Iterator[tuple[int, _Move, State]]:
        for actor in self._actors:
            for move in self.machine.moves(actor, state):
                if move.lost <= state[-1]:
                    yield actor, move, self.machine.after(state, actor, move)

    def level(self, states: list[State], *, keep_edges: bool) -> tuple[list[State], str, list[State]]:
        """The states one step further; with what is broken, and the way there."""
        machine, seen = self.machine, self.seen
        fresh: list[State] = []
        canonical = machine.canonical
        for state in states:
            targets = []
            for _actor, move, concrete in self.successors(state):
                target = concrete if concrete in seen else canonical(concrete)
                targets.append(target)
                if move.broken:
                    return fresh, move.broken, [*self.way(state), target]
                if target not in seen:
                    seen[target] = state
                    fresh.append(target)
                    if broken := machine.broken(target[0]):
                        return fresh, broken, self.way(target)
            if keep_edges:
                self.edges[state] = targets
            if not targets and (broken := machine.stuck(state)):
                return fresh, broken, self.way(state)
        return fresh, "", []

    def way(self, state: State) -> list[State]:
        """The states on the way to this one, as they were explored."""
        back: list[State] = [state]
        while (before := self.seen[back[-1]]) is not None:
            back.append(before)
        return back[::-1]

    def told(self, way: list[State], names: Sequence[str]) -> tuple[str, ...]:
        """The way step by step, by the same actors from beginning to end: exchanges are undone by walking it again."""
        lines = []
        state = way[0]
        for target in way[1:]:
            for actor, move, concrete in self.successors(state):
                if self.machine.canonical(concrete) == target:
                    lines += [f"{names[actor]}: {action}" for action in move.action.split(THEN)]
                    state = concrete
                    break
        return tuple(lines)

    def reached(self) -> frozenset[Shared]:
        return frozenset(self.machine.shared.values[number] for number in {state[0] for state in self.seen})

    def cycle(self) -> list[State]:
        """A way that returns to itself, if there is one: states that nobody ever leaves are peeled off first."""
        entering: dict[State, list[State]] = {}
        leaving = {state: len(targets) for state, targets in self.edges.items()}
        for state, targets in self.edges.items():
            for target in targets:
                entering.setdefault(target, []).append(state)
        ends = [state for state, count in leaving.items() if not count]
        while ends:
            for state in entering.get(ends.pop(), ()):
                leaving[state] -= 1
                if not leaving[state]:
                    ends.append(state)
        loop = [state for state in leaving if leaving[state]]
        if not loop:
            return []
        way = [loop[0]]
        while way[-1] not in way[:-1]:
            way.append(next(target for target in self.edges[way[-1]] if leaving[target]))
        return self.way(way[way.index(way[-1])])[:-1] + way[way.index(way[-1]) :]


def _names(roles: Sequence[str]) -> list[str]:
    """A name for every actor: its part, with a number where several play it."""
    return [role if roles.count(role) == 1 else f"{role}#{roles[:at].count(role) + 1}" for at, role in enumerate(roles)]


def explore(
    model: Model,
    *,
    replies_lost_max: int = 0,
    depth_max: int | None = None,
    fused: bool = False,
    may_not_return: bool = False,
) -> Result:
    """Explore everything, or `depth_max` steps.

    With `fused` the reads of what is held are one step with the conditional write that they are for: the write lands only if
    nothing changed in between, so the reads may as well have come right before it. With `may_not_return` a way that returns to
    itself is a failure, too.
    """
    started = process_time()
    search = _Search(model, replies_lost_max, fused=fused)
    names = _names(model.roles)
    states, depth = [search.first], 0

    def found(broken: str, way: list[State]) -> Result:
        trace = search.told(way, names)
        return Result(len(search.seen), len(trace), process_time() - started, whole=False, broken=broken, trace=trace)

    while states and (depth_max is None or depth < depth_max):
        states, broken, way = search.level(states, keep_edges=may_not_return)
        if broken:
            return found(broken, way)
        depth += bool(states)
    if may_not_return and (way := search.cycle()):
        return found("progress: this can go on for ever", way)
    seconds = process_time() - started
    return Result(len(search.seen), depth, seconds, whole=not states, reached=search.reached())
