"""The explorer finds what there is to find, by a shortest way, and only that."""

from collections.abc import Iterable

from specs.explorer import Local, Model, Shared, Step, explore


class Counter(Model):
    """Everybody adds one to one object, which they read first; `told` counts what was acknowledged."""

    name = "counter"

    def __init__(self, people: int, *, conditional: bool = True, asks_again: bool = False) -> None:
        self.roles = ("adder",) * people
        self._conditional = conditional
        self._asks_again = asks_again

    def initial(self) -> tuple[Shared, tuple[Local, ...]]:
        return (0, 0), tuple((0, "read", 0) for _ in self.roles)

    def dropped(self, local: Local) -> Local:
        return (0, "read", 0) if self._conditional and local[1] == "add" else local

    def steps(self, _role: str, shared: Shared, local: Local) -> Iterable[Step]:
        count, told = shared
        if local[1] == "read":
            yield Step("reads", (1, "add", count))
        elif local[1] == "add":
            added = (0, local[2] + 1)
            yield Step("adds", (0, "end", 0), (added, (1, told + 1)))
            after = (0, "read", 0) if self._asks_again else (0, "end", 0)
            yield Step("adds, the reply is lost", after, (added,), lost=True)

    def is_passing(self, local: Local) -> bool:
        return bool(local[1] == "add")

    def broken(self, shared: Shared) -> str:
        if shared[1] > shared[0]:
            return "an acknowledged addition is lost"
        return "too much" if shared[0] > len(self.roles) else ""


def test_conditional_additions_are_never_lost() -> None:
    result = explore(Counter(3))
    assert (result.broken, result.whole) == ("", True)
    assert {count for count, _ in result.reached} == {0, 1, 2, 3}


def test_an_unconditional_addition_is_lost_by_the_shortest_way() -> None:
    result = explore(Counter(3, conditional=False))
    assert result.broken == "an acknowledged addition is lost"
    assert result.trace == ("adder#1: reads", "adder#2: reads", "adder#1: adds", "adder#2: adds")


def test_a_lost_reply_is_found_if_one_may_be_lost() -> None:
    assert explore(Counter(1, asks_again=True)).broken == ""
    result = explore(Counter(1, asks_again=True), replies_lost_max=1)
    assert result.trace == ("adder: reads", "adder: adds, the reply is lost", "adder: reads", "adder: adds")


def test_people_who_do_the_same_are_interchangeable() -> None:
    class Distinct(Counter):
        """The same adders, each with a name of its own."""

        def __init__(self, people: int) -> None:
            super().__init__(people)
            self.roles = tuple(f"adder {one}" for one in range(people))

    together, apart = explore(Counter(3)), explore(Distinct(3))
    assert together.states < apart.states
    assert together.reached == apart.reached


def test_a_bound_is_a_bound() -> None:
    result = explore(Counter(3), depth_max=2)
    assert (result.depth, result.whole) == (2, False)


def test_reads_are_one_step_with_the_write_that_they_are_for() -> None:
    fused, one_by_one = explore(Counter(3), fused=True), explore(Counter(3))
    assert fused.states < one_by_one.states
    assert fused.reached == one_by_one.reached


def test_a_fused_way_is_told_step_by_step() -> None:
    trace = explore(Counter(1, asks_again=True), replies_lost_max=1, fused=True).trace
    assert trace == ("adder: reads", "adder: adds, the reply is lost", "adder: reads", "adder: adds")


class Lights(Model):
    """Somebody turns a light on; somebody else may turn it off again."""

    name = "lights"

    def __init__(self, *, both: bool) -> None:
        self.roles = ("on", "off") if both else ("on",)

    def initial(self) -> tuple[Shared, tuple[Local, ...]]:
        return ("off",), tuple((0, "") for _ in self.roles)

    def steps(self, role: str, shared: Shared, local: Local) -> Iterable[Step]:
        if shared[0] != role:
            yield Step(f"turns it {role}", local, ((0, role),))

    def broken(self, _shared: Shared) -> str:
        return ""

    def stuck(self, shared: Shared, _locals: tuple[Local, ...]) -> str:
        return f"it stays {shared[0]}"


def test_a_way_that_returns_is_a_failure_only_where_it_may_not() -> None:
    assert explore(Lights(both=True)).broken == ""
    result = explore(Lights(both=True), may_not_return=True)
    assert result.broken == "progress: this can go on for ever"
    assert result.trace == ("on: turns it on", "off: turns it off")


def test_a_state_that_nobody_leaves_is_looked_at() -> None:
    assert explore(Lights(both=False)).broken == "it stays on"
