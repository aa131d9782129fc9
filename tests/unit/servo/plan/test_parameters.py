"""Settings of a run: whom they reach, what type they get, and that another value is another computation."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from uuid import UUID

import pytest

from arco import asset
from arco.kernel.errors import InvalidInput
from arco.servo.plan.parameters import overridden
from arco.servo.sdk.graph import Graph
from arco.servo.sdk.project import assembled


@pytest.fixture
def graph(tmp_path) -> Graph:
    @asset
    def one(run, limit=10, name="x", share=0.5, on=True):
        return run

    @asset
    def two(run, limit=20):
        return run

    return assembled([one.written, two.written], folder=tmp_path, name="shop", namespace="shop").graph


def settings(graph: Graph) -> dict[str, dict[str, object]]:
    return {key.name: dict(one.parameters) for key, one in graph.assets.items()}


def changed(graph: Graph, after: Graph) -> set[str]:
    return {key.name for key in graph.assets if graph.assets[key].fingerprint != after.assets[key].fingerprint}


def test_nothing_given_changes_nothing(graph: Graph) -> None:
    assert overridden(graph, {}) is graph


@pytest.mark.parametrize(
    ("word", "reached"), [("limit", {"one", "two"}), ("two.limit", {"two"}), ("shop.one.limit", {"one"})]
)
def test_a_setting_reaches_whom_it_names(graph: Graph, word: str, reached: set[str]) -> None:
    after = overridden(graph, {word: "7"})
    assert {name for name, found in settings(after).items() if found["limit"] == 7} == reached
    assert changed(graph, after) == reached


def test_the_default_given_again_is_no_other_computation(graph: Graph) -> None:
    assert changed(graph, overridden(graph, {"one.limit": "10"})) == set()


@pytest.mark.parametrize(
    ("word", "text", "value"), [("name", "7", "7"), ("share", "1", 1.0), ("on", "false", False), ("one.limit", "-3", -3)]
)
def test_a_text_becomes_a_value_of_the_defaults_type(graph: Graph, word: str, text: str, value: object) -> None:
    found = settings(overridden(graph, {word: text}))["one"][word.rpartition(".")[2]]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        (date(2025, 1, 1), "2025-02-03", date(2025, 2, 3)),
        (datetime(2025, 1, 1, tzinfo=UTC), "2025-02-03T04:00+00:00", datetime(2025, 2, 3, 4, tzinfo=UTC)),
        (time(1), "02:30", time(2, 30)),
        (timedelta(hours=1), "2h", timedelta(hours=2)),
        (Decimal("0.1"), "0.30", Decimal("0.30")),
        (UUID(int=1), str(UUID(int=2)), UUID(int=2)),
        (PurePosixPath("a"), "b/c", PurePosixPath("b/c")),
        (("de", "fr"), '["it"]', ("it",)),
        ((date(2025, 1, 1),), '["2025-02-03"]', (date(2025, 2, 3),)),
        ({"de"}, '["it", "fr"]', {"it", "fr"}),
        (frozenset({1}), "[2, 3]", frozenset({2, 3})),
        ([0.5], "[1]", [1.0]),
        ({"de": Decimal(1)}, '{"fr": 2}', {"fr": Decimal(2)}),
        ((), "[1, true]", (1, True)),
    ],
    ids=str,
)
def test_dates_tuples_sets_and_their_like_can_be_set(tmp_path: Path, default: object, text: str, value: object) -> None:
    @asset
    def one(run, setting=default):
        return run

    graph = assembled([one.written], folder=tmp_path, name="shop", namespace="shop").graph
    (found,) = overridden(graph, {"setting": text}).assets.values()
    assert found.parameters["setting"] == value
    assert type(found.parameters["setting"]) is type(value)
    (again,) = overridden(graph, {"setting": text}).assets.values()
    assert found.fingerprint == again.fingerprint != next(iter(graph.assets.values())).fingerprint


@pytest.mark.parametrize(
    ("default", "text"),
    [(date(2025, 1, 1), "soon"), (("de",), "it"), (("de",), "[1]"), ({1}, '["x"]'), (Decimal(1), "much"), ({1}, "[[1]]")],
)
def test_what_is_no_value_of_the_kind_is_refused(tmp_path: Path, default: object, text: str) -> None:
    @asset
    def one(run, setting=default):
        return run

    graph = assembled([one.written], folder=tmp_path, name="shop", namespace="shop").graph
    with pytest.raises(InvalidInput, match=f"is not a {type(default).__name__}"):
        overridden(graph, {"setting": text})


def test_a_set_is_the_same_computation_whatever_the_order_it_is_given_in(tmp_path: Path) -> None:
    @asset
    def one(run, regions=frozenset({"de"})):
        return run

    graph = assembled([one.written], folder=tmp_path, name="shop", namespace="shop").graph
    first, second = (
        overridden(graph, {"regions": text}).assets.values() for text in ('["a", "b", "c"]', '["c", "b", "a"]')
    )
    assert [one.fingerprint for one in first] == [one.fingerprint for one in second]


@pytest.mark.parametrize(("word", "text"), [("limit", "many"), ("limit", "true"), ("on", "1"), ("share", "half")])
def test_a_value_of_another_type_is_refused(graph: Graph, word: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"{word}={text} is not a"):
        overridden(graph, {word: text})


def test_a_setting_that_nobody_has_is_refused_with_those_there_are(graph: Graph) -> None:
    with pytest.raises(InvalidInput, match="no asset has a parameter 'limits'") as refused:
        overridden(graph, {"limits": "1"})
    assert "shop.two.limit" in str(refused.value.hint)
