"""Histories whose verdict is known, told as people would tell them."""

import random
from collections.abc import Hashable, Iterable
from dataclasses import replace
from math import nan

import pytest

from arco_sim.linearizability import Model, Operation, Verdict, check, explain
from arco_sim.models import CasRegister, Counter

LOST = None
SMALL_BUDGET = 5_000  # plenty for every history told here, and soon reached should the search grow wild


def write(client, value, called_at, returned_at):
    return Operation(client, "k", "write", value, "ok", called_at, returned_at)


def read(client, value, called_at, returned_at):
    return Operation(client, "k", "read", None, value, called_at, returned_at)


def create(client, value, result, called_at, returned_at):
    return Operation(client, "k", "create", value, result, called_at, returned_at)


def cas(client, expected, new, result, called_at, returned_at):
    return Operation(client, "k", "cas", (expected, new), result, called_at, returned_at)


def delete(client, called_at, returned_at):
    return Operation(client, "k", "delete", None, "ok", called_at, returned_at)


def increment(client, result, called_at, returned_at):
    return Operation(client, "k", "increment", None, result, called_at, returned_at)


def on(key, *operations):
    return [replace(operation, key=key) for operation in operations]


REGISTER_GOOD = {
    "nothing happened": [],
    "one after the other": [write("a", 1, 0, 1), read("a", 1, 2, 3), write("b", 2, 4, 5), read("a", 2, 6, 7)],
    "an untouched key is absent": [read("a", None, 0, 1)],
    "the list order of a history means nothing": [read("b", 1, 4, 5), write("a", 1, 0, 1)],
    "concurrent writes, first wins": [write("a", 1, 0, 9), write("b", 2, 0, 9), read("c", 1, 10, 11)],
    "concurrent writes, second wins": [write("a", 1, 0, 9), write("b", 2, 0, 9), read("c", 2, 10, 11)],
    "a read beside a write sees the old value": [write("a", 1, 0, 9), read("b", None, 1, 2)],
    "a read beside a write sees the new value": [write("a", 1, 0, 9), read("b", 1, 1, 2)],
    "two reads beside a write, old then new": [
        write("a", 1, 0, 9),
        read("b", None, 1, 2),
        read("c", 1, 3, 4),
    ],
    "equal times are concurrent": [write("a", 1, 0, 5), read("b", None, 5, 6)],
    "instants at the same moment are concurrent": [
        write("a", 1, 5, 5),
        read("b", None, 5, 5),
        read("c", 1, 5, 5),
    ],
    "an unknown write is observed later": [
        write("a", 1, 0, 1),
        write("b", 2, 2, LOST),
        read("a", 1, 3, 4),
        read("a", 2, 5, 6),
    ],
    "an unknown write is never observed": [
        write("a", 1, 0, 1),
        write("b", 2, 2, LOST),
        read("a", 1, 3, 4),
        read("a", 1, 5, 6),
    ],
    "an unknown write is observed by a read called at its own call": [
        write("a", 1, 4, LOST),
        read("b", 1, 2, 4),
    ],
    "a stalled unknown write lands after many others": [
        write("slow", "late", 0, LOST),
        *(write("a", number, 10 * number, 10 * number + 1) for number in range(1, 41)),
        *(read("b", number, 10 * number + 2, 10 * number + 3) for number in range(1, 41)),
        read("b", "late", 1_000, 1_001),
    ],
    "two unknown writes of one value may both land": [
        write("a", 1, 0, LOST),
        write("b", 1, 1, LOST),
        read("c", 1, 2, 3),
        write("c", 2, 4, 5),
        read("c", 1, 6, 7),
    ],
    "an unknown write is needed later, not where it first seems to help": [
        write("a", 2, 0, 1),
        write("b", 2, 0, LOST),
        write("c", 3, 2, 8),
        cas("d", 2, 3, "ok", 2, 9),
        read("a", 2, 10, 11),
    ],
    "of two like writes the long one may still go last": [
        write("a", 1, 0, 2),
        write("b", 1, 0, 9),
        write("c", 2, 3, 4),
        read("d", 1, 5, 6),
    ],
    "only unknown outcomes": [write("a", 1, 0, LOST), cas("b", 7, 8, "ok", 0, LOST), read("c", 5, 0, LOST)],
    "the noted result of an unknown read means nothing": [
        write("a", 1, 0, 1),
        read("b", 9, 2, LOST),
        read("a", 1, 3, 4),
    ],
    "two unknown swaps chain": [
        write("a", 1, 0, 1),
        cas("b", 1, 2, None, 2, LOST),
        cas("c", 2, 3, None, 3, LOST),
        read("a", 3, 4, 5),
    ],
    "an unknown swap is overtaken and then never fits": [
        write("a", 1, 0, 1),
        cas("b", 1, 2, None, 2, LOST),
        cas("a", 1, 3, "ok", 3, 4),
        read("a", 3, 5, 6),
    ],
    "an unknown create explains why another finds it there": [
        create("a", 1, None, 0, LOST),
        create("b", 2, "exists", 1, 2),
        read("b", 1, 3, 4),
    ],
    "an unknown delete explains a second create": [
        create("a", 1, "ok", 0, 1),
        delete("b", 2, LOST),
        create("a", 2, "ok", 3, 4),
    ],
    "one create wins, the other finds it there": [
        create("a", 1, "ok", 0, 5),
        create("b", 2, "exists", 0, 5),
        read("a", 1, 6, 7),
    ],
    "delete, then create again": [
        create("a", 1, "ok", 0, 1),
        delete("a", 2, 3),
        read("b", None, 4, 5),
        create("b", 2, "ok", 6, 7),
    ],
    "a swap fails beside the write that spoils it": [
        write("a", 1, 0, 1),
        write("a", 2, 2, 9),
        cas("b", 1, 3, "failed", 3, 4),
        read("c", 2, 10, 11),
    ],
    "a swap expecting absence creates": [cas("a", None, 1, "ok", 0, 1), read("b", 1, 2, 3)],
    "ABA: the same swap twice, with a way back between": [
        write("x", "A", 0, 1),
        cas("a", "A", "B", "ok", 2, 3),
        cas("b", "B", "A", "ok", 4, 5),
        cas("c", "A", "B", "ok", 6, 7),
    ],
    "ABA: the way back is an unknown swap": [
        write("x", "A", 0, 1),
        cas("a", "A", "B", "ok", 2, 3),
        cas("b", "B", "A", None, 4, LOST),
        cas("c", "A", "C", "ok", 6, 7),
    ],
    "keys are judged apart": [
        *on("left", write("a", 1, 0, 1), read("a", 1, 4, 5)),
        *on("right", write("b", 2, 2, 3), read("b", 2, 6, 7)),
    ],
}

REGISTER_BAD = {
    "a stale read after a completed write": [write("a", 1, 0, 1), write("a", 2, 2, 3), read("b", 1, 4, 5)],
    "an acknowledged write is gone": [write("a", 1, 0, 1), read("b", None, 2, 3)],
    "a value nobody wrote": [write("a", 1, 0, 9), read("b", 7, 1, 2)],
    "a value read before its write was called": [read("b", 1, 0, 1), write("a", 1, 2, 3)],
    "an unknown write read before its call": [read("b", 1, 0, 1), write("a", 1, 2, LOST)],
    "an unknown write read before its call, beside a longer write": [
        read("b", 1, 0, 1),
        write("c", 2, 0, 9),
        write("a", 1, 3, LOST),
    ],
    "a lost update: the second swap from a value already replaced": [
        write("a", 1, 0, 1),
        cas("a", 1, 2, "ok", 2, 3),
        cas("b", 1, 3, "ok", 4, 5),
    ],
    "two concurrent swaps succeed from one value": [
        write("x", 1, 0, 1),
        cas("a", 1, 2, "ok", 2, 9),
        cas("b", 1, 3, "ok", 2, 9),
    ],
    "two clients both win a create": [create("a", 1, "ok", 0, 9), create("b", 2, "ok", 0, 9)],
    "an unknown write is observed and then vanishes": [
        write("a", 1, 0, 1),
        write("b", 2, 2, LOST),
        read("a", 2, 3, 4),
        read("a", 1, 5, 6),
    ],
    "one unknown write lands twice": [
        write("a", 1, 0, LOST),
        read("c", 1, 2, 3),
        write("c", 2, 4, 5),
        read("c", 2, 6, 7),
        write("c", 3, 8, 9),
        read("c", 1, 10, 11),
        write("c", 4, 12, 13),
        read("c", 1, 14, 15),
    ],
    "an unknown swap from a value that never was": [cas("a", 9, 2, None, 0, LOST), read("b", 2, 1, 2)],
    "an unknown read writes nothing": [read("a", 1, 0, LOST), read("b", 1, 1, 2)],
    "real time is violated across clients": [
        write("a", 1, 0, 1),
        write("b", 2, 2, 3),
        read("c", 2, 4, 5),
        read("d", 1, 6, 7),
    ],
    "two reads beside a write, new then old": [
        write("a", 1, 0, 9),
        read("b", 1, 1, 2),
        read("c", None, 3, 4),
    ],
    "two readers see two writes in opposite orders": [
        write("a", 1, 0, 9),
        write("b", 2, 0, 9),
        read("c", 1, 10, 14),
        read("c", 2, 15, 19),
        read("d", 2, 10, 14),
        read("d", 1, 15, 19),
    ],
    "a swap fails although its value was there throughout": [
        write("a", 1, 0, 1),
        cas("b", 1, 2, "failed", 2, 3),
    ],
    "a create finds something where nothing was": [create("a", 1, "exists", 0, 1)],
    "a create succeeds over an acknowledged value": [write("a", 1, 0, 1), create("b", 2, "ok", 2, 3)],
    "a value outlives its delete": [write("a", 1, 0, 1), delete("a", 2, 3), read("b", 1, 4, 5)],
    "ABA without a way back": [
        write("x", "A", 0, 1),
        cas("a", "A", "B", "ok", 2, 3),
        cas("c", "A", "B", "ok", 6, 7),
    ],
    "ABA: the one unknown way back is walked twice": [
        write("x", "A", 0, 1),
        cas("b", "B", "A", None, 0, LOST),
        cas("a", "A", "B", "ok", 2, 3),
        cas("a", "A", "B", "ok", 4, 5),
        cas("a", "A", "B", "ok", 6, 7),
    ],
    "a reply no register gives": [Operation("a", "k", "write", 1, "perhaps", 0, 1)],
}

COUNTER_GOOD = {
    "each increment tells the new number": [increment("a", 2, 0, 9), increment("b", 1, 0, 9), read("a", 2, 10, 11)],
    "increments that only say ok": [
        increment("a", "ok", 0, 9),
        increment("b", "ok", 0, 9),
        read("c", 1, 1, 8),
        read("c", 2, 10, 11),
    ],
    "a lost increment may count": [increment("a", None, 0, LOST), increment("b", 2, 1, 2)],
    "a lost increment may not count": [increment("a", None, 0, LOST), increment("b", 1, 1, 2)],
    "some of many lost increments count": [
        *(increment("a", None, moment, LOST) for moment in range(24)),
        read("b", 17, 30, 31),
        read("b", 21, 32, 33),
    ],
}

COUNTER_BAD = {
    "a lost update: two increments give one number": [increment("a", 1, 0, 9), increment("b", 1, 0, 9)],
    "the number goes down": [increment("a", "ok", 0, 9), read("b", 1, 1, 2), read("b", 0, 3, 4)],
    "more than was ever added": [increment("a", "ok", 0, 9), increment("b", None, 0, LOST), read("c", 3, 10, 11)],
    "one more than all lost increments": [
        *(increment("a", None, moment, LOST) for moment in range(24)),
        read("b", 25, 30, 31),
    ],
    "a lost increment is taken back": [
        increment("a", None, 0, LOST),
        read("b", 1, 1, 2),
        increment("b", 1, 3, 4),
    ],
}


def judged(table):
    return pytest.mark.parametrize("history", list(table.values()), ids=list(table))


class Unhurried:
    """A model that does not say which operations only observe, so the checker must search on."""

    def __init__(self, model: Model) -> None:
        self.initial, self.step, self.step_unknown = model.initial, model.step, model.step_unknown


registers = pytest.mark.parametrize("model", [CasRegister(), Unhurried(CasRegister())], ids=["told", "untold"])
counters = pytest.mark.parametrize("model", [Counter(), Unhurried(Counter())], ids=["told", "untold"])


@registers
@judged(REGISTER_GOOD)
def test_a_register_could_have_done_this(history, model):
    verdict = check(history, model, budget_states=SMALL_BUDGET)
    assert verdict.linearizable, explain(verdict)
    assert (verdict.key, verdict.longest, verdict.stuck, verdict.gave_up) == (None, (), (), False)


@registers
@judged(REGISTER_BAD)
def test_no_register_could_have_done_this(history, model):
    verdict = check(history, model, budget_states=SMALL_BUDGET)
    assert not verdict.linearizable
    assert not verdict.gave_up
    assert verdict.key == "k"
    assert verdict.stuck


@counters
@judged(COUNTER_GOOD)
def test_a_counter_could_have_done_this(history, model):
    verdict = check(history, model, budget_states=SMALL_BUDGET)
    assert verdict.linearizable, explain(verdict)


@counters
@judged(COUNTER_BAD)
def test_no_counter_could_have_done_this(history, model):
    verdict = check(history, model, budget_states=SMALL_BUDGET)
    assert not verdict.linearizable
    assert not verdict.gave_up


def test_a_failure_names_its_key():
    good, bad = REGISTER_GOOD["one after the other"], REGISTER_BAD["a stale read after a completed write"]
    verdict = check([*on("first", *good), *on("second", *bad), *on("third", *good)], CasRegister())
    assert verdict.key == "second"
    assert {operation.key for operation in verdict.longest + verdict.stuck} == {"second"}


def test_a_cheap_refutation_does_not_hide_behind_an_expensive_key():
    expensive = [write("a", number, 0, 9) for number in range(12)]
    bad = REGISTER_BAD["a stale read after a completed write"]
    verdict = check([*on("a", *expensive, read("b", -1, 0, 9)), *on("z", *bad)], CasRegister(), budget_states=20)
    assert (verdict.key, verdict.gave_up) == ("z", False)


def test_the_longest_order_and_what_could_not_follow_are_named():
    first, second, stale = write("a", 1, 0, 1), write("a", 2, 2, 3), read("b", 1, 4, 5)
    lost = write("c", 8, 0, LOST)
    verdict = check([stale, lost, second, first], CasRegister())
    assert verdict.longest == (first, second)
    assert verdict.stuck == (stale,)


def test_the_longest_order_keeps_the_guesses_that_something_rests_on():
    lost, seen, gone = write("a", 1, 0, LOST), read("b", 1, 1, 2), read("b", None, 3, 4)
    verdict = check([lost, seen, gone], CasRegister())
    assert verdict.longest == (lost, seen)
    assert verdict.stuck == (gone,)


@pytest.mark.parametrize("history", [*REGISTER_GOOD.values(), *REGISTER_BAD.values()])
@pytest.mark.parametrize("budget_states", [0, 1, 2, 3, 5])
def test_a_reached_budget_proves_nothing_either_way(history, budget_states):
    verdict = check(history, CasRegister(), budget_states=budget_states)
    assert verdict.states_explored <= budget_states
    if verdict.gave_up:
        assert not verdict.linearizable
        assert verdict.key is not None
    else:
        assert verdict.linearizable == check(history, CasRegister()).linearizable


def test_the_budget_covers_all_keys_together():
    history = [op for key in "abc" for op in on(key, *REGISTER_GOOD["one after the other"])]
    needed = check(history, CasRegister()).states_explored
    assert check(history, CasRegister(), budget_states=needed).linearizable
    assert check(history, CasRegister(), budget_states=needed - 1).gave_up


def test_a_verdict_cannot_claim_success_after_giving_up():
    with pytest.raises(ValueError, match="gave up"):
        Verdict(True, None, (), (), 0, True)


@pytest.mark.parametrize("operation", [write("a", 1, 2, 1), write("a", 1, nan, LOST), write("a", 1, 0, nan)])
def test_times_that_cannot_be_are_refused(operation):
    with pytest.raises(ValueError, match="must return after its call"):
        check([operation], CasRegister())


@pytest.mark.parametrize(
    ("model", "operation"),
    [
        (CasRegister(), increment("a", 1, 0, 1)),
        (CasRegister(), Operation("a", "k", "cas", "no pair", "ok", 0, 1)),
        (CasRegister(), write("a", None, 0, 1)),
        (CasRegister(), create("a", None, "ok", 0, 1)),
        (CasRegister(), cas("a", None, None, "ok", 0, 1)),
        (Counter(), write("a", 1, 0, 1)),
    ],
)
def test_a_model_refuses_what_it_does_not_know(model, operation):
    with pytest.raises(ValueError, match=r"knows no|None cannot be stored"):
        check([operation], model)


class Coin:
    """A state nobody can foresee: each toss shows nothing and may land either way."""

    def initial(self) -> str:
        return "heads"

    def step(self, state: str, operation: Operation) -> Iterable[str]:
        if operation.name == "toss":
            return iter(("heads", "tails"))
        return iter((state,) if operation.result == state else ())

    def step_unknown(self, state: str, operation: Operation) -> Iterable[str]:
        return ("heads", "tails") if operation.name == "toss" else (state,)


def toss(called_at: int, returned_at: int | None) -> Operation:
    return Operation("a", "k", "toss", None, None, called_at, returned_at)


@pytest.mark.parametrize(
    ("history", "possible"),
    [
        ([toss(0, 1), read("b", "tails", 2, 3)], True),
        ([toss(0, 1), read("b", "heads", 2, 3)], True),
        ([toss(0, 1), read("b", "tails", 2, 3), read("b", "heads", 4, 5)], False),
        ([read("b", "tails", 0, 1)], False),
        ([toss(0, LOST), read("b", "tails", 1, 2)], True),
        ([toss(0, LOST), read("b", "tails", 1, 2), read("b", "heads", 3, 4)], False),
        ([toss(0, LOST), toss(0, LOST), read("b", "tails", 1, 2), read("b", "heads", 3, 4)], True),
    ],
)
def test_a_model_may_leave_the_next_state_open(history, possible):
    assert check(history, Coin()).linearizable is possible


def test_the_picture_shows_each_operation_as_an_interval():
    history = [write("a", 1, 0, 1), write("b", 2, 0, LOST), read("c", 2, 2, 5), read("d", 1, 6, 7)]
    picture = explain(check(history, CasRegister())).splitlines()
    assert picture[0].startswith("key 'k': not linearizable (")
    assert picture[1:5] == [
        "      1  a write(1) -> 'ok'     |--|",
        "      2  b write(2) -> unknown  |------------>",
        "      3  c read() -> 2              |--|",
        "      x  d read() -> 1                  |--|",
    ]
    assert len(picture) == 6


def test_the_picture_of_a_long_history_shows_its_end():
    history = [write("a", number, 2 * number, 2 * number + 1) for number in range(100)]
    picture = explain(check([*history, read("b", 5, 1_000, 1_001)], CasRegister()))
    assert "... 88 operations before these" in picture
    assert "a write(99)" in picture
    assert "a write(87)" not in picture
    assert len(picture.splitlines()) == 16


def test_the_picture_says_when_nothing_was_decided():
    verdict = check(REGISTER_BAD["two clients both win a create"], CasRegister(), budget_states=1)
    assert "undecided, budget reached" in explain(verdict)
    assert "not linearizable" not in explain(verdict)


def test_the_picture_of_success_is_one_line():
    assert explain(check([write("a", 1, 0, 1)], CasRegister())) == "linearizable (1 states explored)"


# --- cost, counted in configurations, because clocks differ between machines


def test_a_long_history_needs_no_recursion_and_no_search():
    history = [write("a", number, 2 * number, 2 * number + 1) for number in range(5_000)]
    assert check(history, CasRegister()).states_explored == 5_000


def busy_register(seed: int, *, operations: int, clients: int) -> list[Operation]:
    """What clients would note down about a real register; one reply in fifty is lost."""
    rng = random.Random(seed)
    free_at = [0.0] * clients
    planned: list[tuple[float, float, float | None, int, str, int]] = []
    for number in range(operations):
        client = free_at.index(min(free_at))
        called_at = free_at[client] + rng.uniform(0, 0.2)
        free_at[client] = called_at + rng.uniform(0, 2)
        effect_at = rng.uniform(called_at, free_at[client])
        returned_at: float | None = free_at[client]
        if rng.random() < 0.02:
            returned_at, effect_at = None, effect_at + rng.choice([0.0, 50.0])
        planned.append((effect_at, called_at, returned_at, client, rng.choice(["read", "write"]), number))
    value: Hashable = None
    history = []
    for _, called_at, returned_at, client, name, number in sorted(planned, key=lambda plan: plan[0]):
        value = number if name == "write" else value
        make, shown = (write, number) if name == "write" else (read, value)
        history.append(make(f"client-{client}", shown, called_at, returned_at))
    return history


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_operations_by_eight_clients_stay_cheap(seed):
    history = busy_register(seed, operations=1_000, clients=8)
    verdict = check(history, CasRegister(), budget_states=50_000)
    assert verdict.linearizable, explain(verdict)


@pytest.mark.parametrize("seed", range(5))
def test_one_impossible_read_among_a_thousand_operations_is_found_cheaply(seed):
    history = busy_register(seed, operations=1_000, clients=8)
    reads = [place for place, one in enumerate(history) if one.name == "read" and one.returned_at is not None]
    place = reads[len(reads) * 3 // 4]
    history[place] = replace(history[place], result="never written")
    verdict = check(history, CasRegister(), budget_states=200_000)
    assert not verdict.linearizable
    assert not verdict.gave_up
    assert history[place] in verdict.stuck


def test_lost_writes_that_explain_nothing_cost_next_to_nothing():
    lost = [write("a", f"lost {number}", 0, LOST) for number in range(40)]
    verdict = check([*lost, write("b", 1, 0, 1), read("b", 2, 2, 3)], CasRegister(), budget_states=200)
    assert not verdict.linearizable
    assert not verdict.gave_up
