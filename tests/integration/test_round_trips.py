"""How often an operation asks its store before it answers: counts, which depend on the code alone and on no clock.

Warm: the server knows the table. Cold: its process has just started and said that it is ready, so it knows the names and
nothing of any table. Unready: it is asked before that, and knows nothing.
"""

import pytest

from . import catalog_costs as costs
from .catalog_costs import Case, Temperature, measure

WARM, COLD, UNREADY = Temperature


@pytest.mark.parametrize(
    ("case", "temperature", "trips"),
    [
        (costs.load, WARM, 1),
        (costs.load, COLD, 2),
        (costs.load, UNREADY, 4),
        (costs.load_unchanged, WARM, 1),
        (costs.load_unchanged, COLD, 2),
        (costs.load_unchanged, UNREADY, 4),
        (costs.list_tables, WARM, 1),
        (costs.list_tables, COLD, 1),
        (costs.list_tables, UNREADY, 2),
        (costs.load_namespace, WARM, 1),
        (costs.load_namespace, COLD, 1),
        (costs.load_namespace, UNREADY, 2),
        (costs.namespace_exists, WARM, 1),
        (costs.table_exists, WARM, 1),
    ],
)
def test_a_read_waits_for_as_many_round_trips(case: Case, temperature: Temperature, trips: int) -> None:
    cost = measure(case, temperature)
    assert cost.trips == cost.trips_in_all == trips


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize(
    ("case", "temperature", "trips"),
    [
        (costs.commit, WARM, 2),
        (costs.commit, COLD, 4),
        (costs.commit, UNREADY, 6),
        (costs.commit_at_once, WARM, 2),
        (costs.create_table, WARM, 3),
        (costs.create_table, COLD, 3),
        (costs.create_table, UNREADY, 5),
    ],
)
def test_a_change_waits_for_as_many_round_trips(case: Case, temperature: Temperature, trips: int, key: bool) -> None:
    assert measure(case, temperature, key=key).trips == trips


@pytest.mark.parametrize(
    ("case", "temperature", "key", "requests"),
    [
        (costs.commit, WARM, True, 7),
        (costs.commit, WARM, False, 5),
        (costs.commit, COLD, True, 10),
        (costs.commit, COLD, False, 8),
        (costs.commit_at_once, WARM, True, 7),
        (costs.commit_at_once, WARM, False, 5),
    ],
)
def test_a_commit_makes_as_many_requests_in_all(case: Case, temperature: Temperature, key: bool, requests: int) -> None:
    assert measure(case, temperature, key=key).requests_in_all == requests


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize("tables", [2, 10])
@pytest.mark.parametrize(("temperature", "trips"), [(WARM, 3), (COLD, 5)])
def test_a_transaction_waits_for_as_many_round_trips_whatever_its_size(
    temperature: Temperature, trips: int, tables: int, key: bool
) -> None:
    assert measure(costs.transaction(tables), temperature, key=key).trips == trips


@pytest.mark.parametrize(("temperature", "each"), [(WARM, 5), (COLD, 7)])
def test_the_requests_of_a_transaction_grow_with_its_tables_and_by_no_more(temperature: Temperature, each: int) -> None:
    # The record twice, the names once; then of each table: file, receipt of the base, prepare, receipt, finish.
    for tables in (2, 5, 10):
        assert measure(costs.transaction(tables), temperature).requests_in_all <= 3 + each * tables


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize("tables", [2, 10])
def test_a_transaction_that_creates_tables_waits_for_as_many_round_trips_whatever_its_size(tables: int, key: bool) -> None:
    # The record beside the notes of what was staged, the tables, a commit of their names and its swing, the decision.
    cost = measure(costs.creations(tables), key=key)
    assert cost.trips == 5
    assert cost.requests_in_all <= 14 + 5 * tables


@pytest.mark.parametrize("after_ms", [0, 0.5, 1, 1.5, 2, 5])
def test_a_transaction_does_not_race_with_what_is_left_to_do_of_the_one_before_it(after_ms: float) -> None:
    # A request takes a millisecond: the receipts of the one before are on their way, then its pointers, then all is done.
    cost = measure(costs.transaction(5, after_ms=after_ms))
    assert cost.trips == 3
    assert cost.requests_in_all <= 3 + 5 * 5


@pytest.mark.parametrize("after_ms", [0, 0.5, 1, 1.5, 2, 5])
def test_a_commit_does_not_race_with_what_is_left_to_do_of_a_transaction(after_ms: float) -> None:
    cost = measure(costs.commit_after_transaction(after_ms))
    assert cost.trips == 2
    assert cost.requests_in_all <= 8  # one more than after a commit: the receipt of the transaction


def test_nobody_who_asks_whether_a_table_exists_pays_for_what_its_file_says() -> None:
    assert measure(costs.load).requests_in_all == 3  # the names, the pointer, the file
    assert measure(costs.table_exists).requests_in_all == 2


@pytest.mark.parametrize("case", [costs.load_namespace, costs.namespace_exists])
def test_a_namespace_costs_one_question_and_no_bytes(case: Case) -> None:
    # Spark asks seven times for each table that it creates: the manifest is as it was, and nothing is read.
    cost = measure(case)
    assert (cost.requests_in_all, cost.bytes_read, cost.bytes_written) == (1, 0, 0)


def test_the_answer_to_an_unchanged_load_is_304() -> None:
    assert measure(costs.load_unchanged).status == 304


def test_the_trips_that_are_counted_are_those_that_take_time() -> None:
    """Every request takes a millisecond of virtual time, so the two ways of counting must agree."""
    ground = costs.Ground()

    async def run() -> tuple[int, float]:
        server = ground.server()
        await costs.prepare(server)
        started = ground.clock.monotonic_s()
        trips = (await costs.commit(ground, server, True)).trips_in_all
        return trips, (ground.clock.monotonic_s() - started) * 1000

    trips, waited_ms = ground.run(run())
    assert waited_ms == pytest.approx(trips)
