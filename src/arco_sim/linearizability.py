"""Decides whether a recorded history could have come from one object that does one operation at a time.

The search is Wing and Gong's, with Lowe's memory of (operations linearized, model state), run on each key
by itself. An operation whose reply was lost has no return: it may take effect at any moment after its call,
even after everything else, or never.

What must never enter: clocks, randomness, threads and storage. A history is data, a verdict is a pure
function of it. And no path may turn an exhausted budget into "linearizable".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

State = TypeVar("State", bound=Hashable)

EXPLAINED_PREFIX_OPERATIONS = 12


@dataclass(frozen=True, slots=True)
class Operation:
    """One call as its client saw it. `result` means nothing when `returned_at` is None: outcome unknown."""

    client: str
    key: str
    name: str
    argument: Hashable
    result: Hashable
    called_at: float | int
    returned_at: float | int | None


class Model(Protocol[State]):
    """What one key does when it does one operation at a time.

    Both steps may look at an operation's name and argument, and `step` at its result; who asked, and when,
    is the checker's business. The checker relies on it: two operations alike in these are interchangeable.
    """

    def initial(self) -> State:
        """The state of a key nobody has touched."""

    def step(self, state: State, operation: Operation) -> Iterable[State]:
        """Possible next states given the observed result; none when `state` cannot give that result."""

    def step_unknown(self, state: State, operation: Operation) -> Iterable[State]:
        """Possible next states if the operation took effect and nobody saw its result."""


@runtime_checkable
class Observing(Protocol):
    """What a model may add for speed. An operation that changes nothing is taken as soon as it fits, with no
    second thoughts. A false claim can cost a good history its verdict; it never excuses a bad one."""

    def observes(self, operation: Operation) -> bool:
        """Whether an operation with this name, argument and result leaves every state as it was."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the search found. The three fields in the middle are for people and empty on success."""

    linearizable: bool
    key: str | None
    longest: tuple[Operation, ...]
    stuck: tuple[Operation, ...]
    states_explored: int
    gave_up: bool

    def __post_init__(self) -> None:
        if self.linearizable and self.gave_up:
            raise ValueError("a search that gave up has proved nothing")


def check(history: Sequence[Operation], model: Model[State], *, budget_states: int = 2_000_000) -> Verdict:
    """Judge every key of `history`; `budget_states` bounds the whole call, not each key."""
    by_key: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        # "not <=" rather than ">" refuses NaN as well, with which the order of events would mean nothing.
        if not operation.called_at <= _latest_effect(operation):
            raise ValueError(f"an operation must return after its call: {operation}")
        by_key[operation.key].append(operation)
    explored = 0
    # Short keys first: a cheap refutation must not hide behind an expensive key that eats the budget.
    for key in sorted(by_key, key=lambda key: (len(by_key[key]), key)):
        search = _KeySearch(by_key[key], model, budget_states - explored)
        linearizable = search.run()
        explored += search.explored
        if not linearizable:
            return Verdict(False, key, search.longest, search.stuck, explored, search.gave_up)
    return Verdict(True, None, (), (), explored, False)


def _latest_effect(operation: Operation) -> float:
    return inf if operation.returned_at is None else operation.returned_at


class _Timeline:
    """Calls and returns of the completed operations still to be linearized: a linked list in time order.

    Node 0 is the head and the end. Lifting an operation unlinks its two nodes, which keep their own links,
    so that dropping it back in the reverse order restores the list exactly.
    """

    def __init__(self, completed: Sequence[Operation]) -> None:
        events: list[tuple[float, bool, int]] = []
        for index, operation in enumerate(completed):
            # False sorts first: at equal times calls come before returns, so that the two are concurrent.
            events += [(operation.called_at, False, index), (_latest_effect(operation), True, index)]
        events.sort()
        self._after = [*range(1, len(events) + 1), 0]
        self._before = [len(events), *range(len(events))]
        self._is_return = [True, *(is_return for _, is_return, _ in events)]
        self._operation_at = [-1, *(index for _, _, index in events)]
        self._call_node, self._return_node = [0] * len(completed), [0] * len(completed)
        for node, (_, is_return, index) in enumerate(events, start=1):
            (self._return_node if is_return else self._call_node)[index] = node

    def candidates(self) -> list[int]:
        """The operations that no outstanding one precedes, in the order of their returns."""
        found = []
        node = self._after[0]
        while not self._is_return[node]:
            found.append(self._operation_at[node])
            node = self._after[node]
        return sorted(found, key=self._return_node.__getitem__)

    def lift(self, index: int) -> None:
        for node in (self._call_node[index], self._return_node[index]):
            self._after[self._before[node]] = self._after[node]
            self._before[self._after[node]] = self._before[node]

    def drop(self, index: int) -> None:
        for node in (self._return_node[index], self._call_node[index]):
            self._after[self._before[node]] = node
            self._before[self._after[node]] = node


class _Point(NamedTuple, Generic[State]):
    """A configuration, and the step that led to it."""

    done: int  # bitset of completed operations
    used: int  # bitset of unknown operations that took effect
    state: State
    operation: Operation | None = None
    lifted: int | None = None  # the index of `operation` when it is a completed one
    detour: tuple[State, ...] = ()  # the states passed since the last completed operation


class _KeySearch(Generic[State]):
    """Depth first over the linearizations of one key, on an explicit stack.

    With equal `done` and `state`, fewer unknown operations used is never worse: those left over may still
    take effect later, or never. That is why a smaller `used` already seen covers a larger one, why unknown
    operations are a last resort, and why each must at once make a difference that its absence would not.
    """

    def __init__(self, operations: Sequence[Operation], model: Model[State], budget_states: int) -> None:
        in_call_order = sorted(operations, key=attrgetter("called_at"))
        self._completed = [one for one in in_call_order if one.returned_at is not None]
        self._unknown = [one for one in in_call_order if one.returned_at is None]
        self._kinds = [(one.name, one.argument, one.result) for one in self._completed]
        self._observes = [isinstance(model, Observing) and model.observes(one) for one in self._completed]
        self._earlier_twins = _earlier_twins(self._unknown)
        self._timeline = _Timeline(self._completed)
        self._model = model
        self._budget_states = budget_states
        self._seen: dict[tuple[int, State], tuple[int, ...]] = {}
        self._most_completed = -1
        self.longest: tuple[Operation, ...] = ()
        self.stuck: tuple[Operation, ...] = ()
        self.explored = 0
        self.gave_up = False

    def run(self) -> bool:
        everything = (1 << len(self._completed)) - 1
        path: list[_Point[State]] = []
        moves: list[Iterator[_Point[State]]] = [iter([_Point(0, 0, self._model.initial())])]
        while moves:
            point = next(moves[-1], None)
            if point is None:
                self._note_dead_end(path)
                moves.pop()
                if path and (lifted := path.pop().lifted) is not None:
                    self._timeline.drop(lifted)
            elif point.done == everything:
                return True
            elif not self._is_covered(point):
                if self.explored >= self._budget_states:
                    self.gave_up = True
                    self._note_dead_end(path)
                    return False
                self.explored += 1
                path.append(point)
                if point.lifted is not None:
                    self._timeline.lift(point.lifted)
                moves.append(self._moves(point))
        return False

    def _is_covered(self, point: _Point[State]) -> bool:
        place = (point.done, point.state)
        seen = self._seen.get(place, ())
        if any(used & point.used == used for used in seen):
            return True
        self._seen[place] = (*seen, point.used)
        return False

    def _moves(self, point: _Point[State]) -> Iterator[_Point[State]]:
        """Where to go next. Lazy: by the time it resumes, the timeline is again what it was at `point`."""
        candidates = self._timeline.candidates()
        for index in candidates:
            operation = self._completed[index]
            if self._observes[index] and point.state in self._model.step(point.state, operation):
                yield _Point(point.done | 1 << index, point.used, point.state, operation, index)
                return
        yield from self._completed_moves(point, candidates)
        yield from self._unknown_moves(point, _latest_effect(self._completed[candidates[0]]))

    def _completed_moves(self, point: _Point[State], candidates: list[int]) -> Iterator[_Point[State]]:
        kinds = set()
        for index in candidates:
            # Of several alike the one that returns first may as well go first, so the others need no turn.
            if self._observes[index] or self._kinds[index] in kinds:
                continue
            kinds.add(self._kinds[index])
            operation = self._completed[index]
            for state in self._model.step(point.state, operation):
                if not any(state in self._model.step(passed, operation) for passed in point.detour):
                    yield _Point(point.done | 1 << index, point.used, state, operation, index)

    def _unknown_moves(self, point: _Point[State], first_return: float) -> Iterator[_Point[State]]:
        detour = (*point.detour, point.state)
        for index, operation in enumerate(self._unknown):
            if operation.called_at > first_return:
                return
            twin = self._earlier_twins[index]
            if point.used >> index & 1 or (twin is not None and not point.used >> twin & 1):
                continue
            for state in self._model.step_unknown(point.state, operation):
                needless = (state in self._model.step_unknown(passed, operation) for passed in point.detour)
                if state != point.state and not any(needless):
                    yield _Point(point.done, point.used | 1 << index, state, operation, None, detour)

    def _note_dead_end(self, path: list[_Point[State]]) -> None:
        completed = path[-1].done.bit_count() if path else 0
        if completed <= self._most_completed:
            return
        self._most_completed = completed
        # Guesses after the last completed operation led nowhere, and would only mislead the reader.
        end = max((place for place, point in enumerate(path, start=1) if point.lifted is not None), default=0)
        self.longest = tuple(point.operation for point in path[:end] if point.operation is not None)
        self.stuck = tuple(self._completed[index] for index in self._timeline.candidates())


def _earlier_twins(unknown: Sequence[Operation]) -> list[int | None]:
    """For each unknown operation the one before it that is alike. Taken in this order they lose nothing, since
    the earlier could have done the same; in any order, n lost increments would be tried in 2**n sets."""
    latest: dict[tuple[str, Hashable], int] = {}
    twins = []
    for index, operation in enumerate(unknown):
        twins.append(latest.get((operation.name, operation.argument)))
        latest[operation.name, operation.argument] = index
    return twins


def explain(verdict: Verdict) -> str:
    """Draw the end of the longest order found and the operations that could not follow, one line each."""
    if verdict.linearizable:
        return f"linearizable ({verdict.states_explored} states explored)"
    finding = "undecided, budget reached" if verdict.gave_up else "not linearizable"
    lines = [f"key {verdict.key!r}: {finding} ({verdict.states_explored} states explored)"]
    hidden = max(0, len(verdict.longest) - EXPLAINED_PREFIX_OPERATIONS)
    if hidden:
        lines.append(f"  ... {hidden} operations before these")
    marks = [*map(str, range(hidden + 1, len(verdict.longest) + 1)), *("x" for _ in verdict.stuck)]
    shown = verdict.longest[hidden:] + verdict.stuck
    calls = [_call(one) for one in shown]
    width = max(map(len, calls), default=0)
    # Columns follow the order of events, not their duration: order is all the verdict depends on.
    moments = sorted({moment for one in shown for moment in (one.called_at, _latest_effect(one))})
    for mark, one, call in zip(marks, shown, calls, strict=True):
        start, end = moments.index(one.called_at), moments.index(_latest_effect(one))
        bar = "  " * start + "|" + "--" * (end - start) + (">" if one.returned_at is None else "|")
        lines.append(f"  {mark:>5}  {call:<{width}}  {bar}")
    lines.append("numbers: the longest order found; x: what had to come next and was not found to fit")
    return "\n".join(lines)


def _call(operation: Operation) -> str:
    argument = "" if operation.argument is None else repr(operation.argument)
    outcome = "unknown" if operation.returned_at is None else repr(operation.result)
    return f"{operation.client} {operation.name}({argument}) -> {outcome}"
