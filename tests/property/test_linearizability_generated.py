"""The checker against a real register, against corrupted copies of its histories, and against brute force."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arco_sim.linearizability import Model, Operation, check, explain
from arco_sim.models import CasRegister, Counter

promise = settings(max_examples=300)

Effect = Callable[[Hashable, str, Hashable], tuple[Hashable, Hashable]]

VALUES = (1, 2, 3)
OBSERVABLE = (None, *VALUES)


def register_effect(value: Hashable, name: str, argument: Hashable) -> tuple[Hashable, Hashable]:
    """A real register, written apart from the model so that the two cannot share a mistake."""
    if name == "read":
        return value, value
    if name == "write":
        return argument, "ok"
    if name == "delete":
        return None, "ok"
    if name == "create":
        return (value, "exists") if value is not None else (argument, "ok")
    assert name == "cas"
    expected, new = argument
    return (new, "ok") if value == expected else (value, "failed")


def counter_effect(value: int, name: str, argument: Hashable) -> tuple[int, Hashable]:
    return (value, value) if name == "read" else (value + 1, value + 1)


@dataclass(frozen=True)
class Kind:
    """One sort of object: how it really behaves, how the model says it does, what clients may ask and hear."""

    model: Model
    effect: Effect
    start: Hashable
    calls: st.SearchStrategy[tuple[str, Hashable]]
    results: dict[str, Sequence[Hashable]] = field(hash=False)


REGISTER = Kind(
    model=CasRegister(),
    effect=register_effect,
    start=None,
    calls=st.one_of(
        st.just(("read", None)),
        st.tuples(st.just("write"), st.sampled_from(VALUES)),
        st.tuples(st.just("create"), st.sampled_from(VALUES)),
        st.tuples(st.just("cas"), st.tuples(st.sampled_from(OBSERVABLE), st.sampled_from(VALUES))),
        st.just(("delete", None)),
    ),
    results={
        "read": OBSERVABLE,
        "write": ("ok",),
        "create": ("ok", "exists"),
        "cas": ("ok", "failed"),
        "delete": ("ok",),
    },
)

COUNTER = Kind(
    model=Counter(),
    effect=counter_effect,
    start=0,
    calls=st.sampled_from([("read", None), ("increment", None)]),
    results={"read": (0, 1, 2, 3), "increment": (1, 2, 3, "ok")},
)


class Unhurried:
    """A model that does not say which operations only observe, so the checker must search on."""

    def __init__(self, model: Model) -> None:
        self.initial, self.step, self.step_unknown = model.initial, model.step, model.step_unknown


@st.composite
def honest_histories(draw, kind: Kind, *, max_operations: int, keys: Sequence[str] = ("k",)):
    """Effects happen one at a time, ten apart; each call and return is drawn around its own effect."""
    values = dict.fromkeys(keys, kind.start)
    history = []
    for place in range(draw(st.integers(0, max_operations))):
        key = draw(st.sampled_from(keys))
        name, argument = draw(kind.calls)
        fate = draw(st.sampled_from(["answered"] * 6 + ["answer lost", "request lost"]))
        after, result = kind.effect(values[key], name, argument)
        if fate != "request lost":
            values[key] = after
        called_at = 10 * place - draw(st.integers(0, 40))
        returned_at = 10 * place + draw(st.integers(0, 40)) if fate == "answered" else None
        client = f"client-{place}"
        history.append(Operation(client, key, name, argument, result, called_at, returned_at))
    return draw(st.permutations(history))


@st.composite
def bent_histories(draw, kind: Kind, *, max_operations: int):
    """Honest histories with a few results or times exchanged for plausible ones: some still hold, some do not."""
    history = list(draw(honest_histories(kind, max_operations=max_operations)))
    assume(history)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(history) - 1))
        operation = history[place]
        match draw(st.sampled_from(["result", "instant", "lost", "later"])):
            case "result":
                bent = replace(operation, result=draw(st.sampled_from(kind.results[operation.name])))
            case "instant":
                bent = replace(operation, returned_at=operation.called_at)
            case "lost":
                bent = replace(operation, returned_at=None)
            case _:
                moved = operation.called_at + draw(st.integers(0, 60))
                bent = replace(operation, called_at=moved, returned_at=moved + draw(st.integers(0, 20)))
        history[place] = bent
    return history


@st.composite
def invented_histories(draw, kind: Kind, *, max_operations: int):
    """Nothing behind them but chance; few moments, so that many of them are equal."""
    history = []
    for place in range(draw(st.integers(0, max_operations))):
        name, argument = draw(kind.calls)
        result = draw(st.sampled_from(kind.results[name]))
        called_at = draw(st.integers(0, 6))
        returned_at = draw(st.none() | st.integers(called_at, called_at + 3))
        history.append(Operation(f"client-{place}", "k", name, argument, result, called_at, returned_at))
    return history


def brute_force(history: Sequence[Operation], kind: Kind) -> bool:
    """Every order of the completed operations and of every choice of unknown ones, without any cleverness."""
    completed = [operation for operation in history if operation.returned_at is not None]
    unknown = [operation for operation in history if operation.returned_at is None]
    choices = chain.from_iterable(combinations(unknown, count) for count in range(len(unknown) + 1))
    return any(
        respects_time(order) and explains_results(order, kind)
        for chosen in choices
        for order in permutations([*completed, *chosen])
    )


def plain_search(history: Sequence[Operation], kind: Kind) -> bool:
    """Everything reachable, nothing pruned: slower than the checker, yet fit for longer histories."""
    completed = {place for place, operation in enumerate(history) if operation.returned_at is not None}
    reached: set[tuple[frozenset[int], Hashable]] = {(frozenset(), kind.start)}
    frontier = list(reached)
    while frontier:
        taken, value = frontier.pop()
        if completed <= taken:
            return True
        first_return = min(history[place].returned_at for place in completed - taken)
        for place, operation in enumerate(history):
            if place in taken or operation.called_at > first_return:
                continue
            after, result = kind.effect(value, operation.name, operation.argument)
            there = (taken | {place}, after)
            if there not in reached and (place not in completed or agrees(operation, result)):
                reached.add(there)
                frontier.append(there)
    return False


def agrees(operation: Operation, result: Hashable) -> bool:
    return operation.result == result or (operation.name, operation.result) == ("increment", "ok")


def respects_time(order: Sequence[Operation]) -> bool:
    return not any(
        later.returned_at is not None and later.returned_at < earlier.called_at for earlier, later in combinations(order, 2)
    )


def explains_results(order: Sequence[Operation], kind: Kind) -> bool:
    value = kind.start
    for operation in order:
        value, result = kind.effect(value, operation.name, operation.argument)
        if operation.returned_at is not None and not agrees(operation, result):
            return False
    return True


def completed_places(history: Sequence[Operation]) -> Iterator[int]:
    return (place for place, operation in enumerate(history) if operation.returned_at is not None)


@promise
@given(st.data(), st.sampled_from([REGISTER, COUNTER]))
def test_what_really_happened_is_always_accepted(data, kind):
    history = data.draw(honest_histories(kind, max_operations=40, keys=("x", "y")))
    verdict = check(history, kind.model)
    assert verdict.linearizable, explain(verdict)


@promise
@given(st.data(), st.sampled_from([REGISTER, COUNTER]))
def test_one_impossible_result_is_always_rejected(data, kind):
    history = list(data.draw(honest_histories(kind, max_operations=30, keys=("x", "y"))))
    places = list(completed_places(history))
    assume(places)
    place = data.draw(st.sampled_from(places))
    history[place] = replace(history[place], result="nothing gives this")
    verdict = check(history, kind.model)
    assert not verdict.linearizable
    assert not verdict.gave_up
    assert verdict.key == history[place].key
    assert history[place] not in verdict.longest


@settings(promise, max_examples=1_500)
@given(st.data(), st.sampled_from([REGISTER, COUNTER]), st.booleans())
def test_brute_force_agrees_on_short_histories(data, kind, unhurried):
    invented = invented_histories(kind, max_operations=6)
    history = data.draw(invented | bent_histories(kind, max_operations=6))
    model = Unhurried(kind.model) if unhurried else kind.model
    assert check(history, model).linearizable == brute_force(history, kind)


@promise
@given(st.data(), st.sampled_from([REGISTER, COUNTER]), st.booleans())
def test_a_search_without_shortcuts_agrees_on_longer_histories(data, kind, unhurried):
    history = data.draw(bent_histories(kind, max_operations=14))
    model = Unhurried(kind.model) if unhurried else kind.model
    assert check(history, model).linearizable == plain_search(history, kind)


@promise
@given(bent_histories(REGISTER, max_operations=25))
def test_knowing_which_operations_observe_changes_no_verdict(history):
    assert check(history, REGISTER.model).linearizable == check(history, Unhurried(REGISTER.model)).linearizable


@promise
@given(bent_histories(REGISTER, max_operations=6))
def test_the_longest_order_is_one_that_could_have_been(history):
    verdict = check(history, REGISTER.model)
    assert respects_time(verdict.longest)
    assert explains_results(verdict.longest, REGISTER)
    assert not set(verdict.stuck) & set(verdict.longest)


@promise
@given(bent_histories(REGISTER, max_operations=20), st.integers(0, 30))
def test_a_budget_never_changes_a_verdict_it_lets_through(history, budget_states):
    verdict = check(history, REGISTER.model, budget_states=budget_states)
    assert verdict.states_explored <= budget_states
    if verdict.gave_up:
        assert not verdict.linearizable
    else:
        assert verdict == check(history, REGISTER.model)
