"""Health, deadlines and explanations: what the story says went wrong is what is found, with the command that helps."""

import pytest

from arco.fold.tables import RUNS, TASKS
from arco.read.assets import Filter, health, health_list
from arco.read.causes import CauseKind, Priority
from arco.read.expected import expected_keys
from arco.read.explain import explain
from arco.read.health import Status, worst
from arco.read.pages import Window
from arco.read.reader import Reader, Rows
from fixtures.state.shop_story import FAILED_RUN
from fixtures.state.state_world import DAILY, DAY_MS, DAYS, NOW_MS, START_MS, day_key, days
from unit.read.ground import Ground

EXPECTED = {
    "ops.events": Status.HEALTHY,  # a source without a deadline
    "ops.features": Status.UNHEALTHY,  # an output is held back
    "ops.model": Status.HEALTHY,
    "ops.new": Status.UNKNOWN,
    "ops.ping": Status.UNKNOWN,
    "ops.pong": Status.UNKNOWN,
    "ops.sessions": Status.UNHEALTHY,  # past its deadline
    "shop.customers": Status.HEALTHY,
    "shop.dashboard": Status.UNHEALTHY,  # past its deadline
    "shop.orders": Status.WARNING,  # one of two checks failed, and others wrote to it
    "shop.prices": Status.HEALTHY,
    "shop.raw_orders": Status.UNKNOWN,
    "shop.report": Status.WARNING,  # skipped
    "shop.revenue": Status.WARNING,  # failed
}


def test_health_of_everything_is_as_the_story_tells(ground: Ground) -> None:
    found, cursor = {}, None
    while True:
        page = ground.ask(health_list, NOW_MS, window=Window(5, cursor))
        found |= {one.asset: one.status for one in page.health}
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == EXPECTED
    assert worst(ground.ask(health_list, NOW_MS, Filter(project="ops")).health) is Status.UNHEALTHY


def test_a_deadline_passes_with_time_alone(ground: Ground) -> None:
    last = max(one.published_ms for one in ground.world.publishes if one.asset == "shop.orders")
    for later_ms, within in ((86_400_000, True), (86_400_001, False)):
        (found,) = ground.ask(health, "shop.orders", last + later_ms).health
        assert found.freshness.within_sla is within
        assert found.freshness.staleness_s == 86_400
        assert (found.status is Status.UNHEALTHY) is not within


def test_quality_counts_the_newest_result_of_each_check(ground: Ground) -> None:
    (found,) = ground.ask(health, "shop.orders", NOW_MS).health
    assert (found.quality.checks, found.quality.passed, found.quality.failing) == (2, 1, ("unique(order_id)",))


def test_an_output_that_was_published_since_is_no_longer_held(ground: Ground) -> None:
    (found,) = ground.ask(health, "ops.features", NOW_MS).health
    assert found.quality.held_outputs == 1


@pytest.mark.parametrize("asset", ["shop.dashboard", "shop.report"])
def test_what_was_skipped_is_explained_by_the_task_that_failed(ground: Ground, asset: str) -> None:
    found = ground.ask(explain, asset, NOW_MS)
    cause = found.causes[0]
    assert (cause.kind, cause.asset, cause.run_id) == (CauseKind.FAILED_TASK, "shop.revenue", FAILED_RUN)
    assert (cause.failure_class, cause.message) == ("transform", "division by zero")
    path = ["shop.dashboard", "shop.report", "shop.revenue"]
    assert list(cause.path) == path[path.index(asset) :]
    commands = [one.command for one in found.recommendations]
    assert commands[0] == "arco run shop.revenue"
    assert f"arco run +{asset}" in commands
    assert f"arco runs {FAILED_RUN}" in commands
    assert [one.kind for one in found.causes] == [CauseKind.FAILED_TASK, CauseKind.MISSING_PARTITIONS]


def test_a_failure_is_its_own_cause_and_its_missing_day_is_named(ground: Ground) -> None:
    found = ground.ask(explain, "shop.revenue", NOW_MS)
    assert [one.kind for one in found.causes] == [CauseKind.FAILED_TASK, CauseKind.MISSING_PARTITIONS]
    assert found.causes[1].missing == (day_key(DAYS - 1),)
    assert found.last_run is not None
    assert found.last_run.outcome == "failed"


@pytest.mark.parametrize(("asset", "outcome"), [("ops.sessions", "succeeded"), ("ops.features", "quarantined")])
def test_the_last_run_of_an_asset_is_the_newest_that_it_was_part_of(ground: Ground, asset: str, outcome: str) -> None:
    async def runs(reader: Reader) -> Rows:
        return await reader.rows(
            f"""SELECT t.asset, run_id FROM {await reader.relation(TASKS)} t JOIN {await reader.relation(RUNS)} r USING (run_id)
                WHERE r.project = 'ops' ORDER BY r.created_at DESC"""
        )

    newest_first = ground.ask(runs)
    assert newest_first[0]["asset"] == "ops.features", "the newest run of the project leaves ops.sessions out"
    expected = next(row["run_id"] for row in newest_first if row["asset"] == asset)
    (found,) = ground.ask(health, asset, NOW_MS).health
    assert found.last_run is not None
    assert (found.last_run.run_id, found.last_run.outcome) == (expected, outcome)


def test_a_held_output_is_explained_by_its_check(ground: Ground) -> None:
    cause = ground.ask(explain, "ops.features", NOW_MS).causes[0]
    assert (cause.kind, cause.checks, cause.partitions) == (CauseKind.HELD_OUTPUT, ("null_rate(user_id)",), days(18, 20))


def test_a_check_that_failed_and_held_nothing_back_is_named_and_to_be_reviewed(ground: Ground) -> None:
    found = ground.ask(explain, "shop.orders", NOW_MS)
    assert found.status is Status.WARNING
    cause, outside = found.causes
    assert outside.kind is CauseKind.EXTERNAL_COMMIT
    assert (cause.kind, cause.asset, cause.checks) == (CauseKind.FAILING_CHECKS, "shop.orders", ("unique(order_id)",))
    assert "50.0% of its checks passed" in cause.summary
    assert [(one.priority, one.command) for one in found.recommendations] == [
        (Priority.MEDIUM, "arco assets shop.orders"),
        (Priority.MEDIUM, "arco run shop.orders --force"),
        (Priority.LOW, "arco runs"),
    ]
    assert found.recommendations[0].action == "review failing checks: unique(order_id)"


def test_a_check_that_held_an_output_back_is_told_of_once(ground: Ground) -> None:
    found = ground.ask(explain, "ops.features", NOW_MS)
    assert CauseKind.FAILING_CHECKS not in [one.kind for one in found.causes]


def test_what_was_not_run_waits_for_a_source_that_is_late(ground: Ground) -> None:
    found = ground.ask(explain, "ops.sessions", NOW_MS)
    assert [(one.kind, one.asset, one.path) for one in found.causes] == [
        (CauseKind.LATE_SOURCE, "ops.events", ("ops.sessions", "ops.events"))
    ]
    assert found.recommendations[0].command == "arco history ops.events"


def test_what_is_well_has_no_cause(ground: Ground) -> None:
    found = ground.ask(explain, "shop.customers", NOW_MS)
    assert (found.status, found.causes, found.recommendations) == (Status.HEALTHY, (), ())
    assert [one.run_id for one in found.activity] == [FAILED_RUN]


def test_what_never_ran_is_told_so(ground: Ground) -> None:
    found = ground.ask(explain, "ops.new", NOW_MS)
    assert [one.kind for one in found.causes] == [CauseKind.NEVER_PUBLISHED]
    assert [one.command for one in found.recommendations] == ["arco run ops.new"]


def test_explaining_a_cycle_ends(ground: Ground) -> None:
    found = ground.ask(explain, "ops.ping", NOW_MS)
    assert found.causes
    assert {one.asset for one in found.causes} <= {"ops.ping", "ops.pong"}


def test_recent_activity_is_newest_first(ground: Ground) -> None:
    found = ground.ask(explain, "shop.orders", NOW_MS).activity
    published = sorted(
        ((one.published_ms, one.materialization_id) for one in ground.world.publishes if one.asset == "shop.orders"),
        reverse=True,
    )
    assert [one.materialization_id for one in found] == [one for _, one in published[:10]]


def test_partitions_are_expected_once_their_period_is_over() -> None:
    assert expected_keys(DAILY, START_MS + 3 * DAY_MS) == [day_key(2), day_key(1), day_key(0)]
    assert expected_keys(DAILY, START_MS + 3 * DAY_MS - 1) == [day_key(1), day_key(0)]
    monthly = [{"name": "m", "kind": "monthly", "start": "2024-12-01", "end": None}]
    assert expected_keys(monthly, START_MS) == ["m=d:2025-02-01", "m=d:2025-01-01", "m=d:2024-12-01"]
    regions = [{"name": "region", "kind": "static", "values": ["de", "fr"]}]
    assert expected_keys(regions, START_MS) == ["region=s:de", "region=s:fr"]
    both = expected_keys([*regions, *DAILY], START_MS + DAY_MS)
    assert both == [f"{day_key(0)},region=s:de", f"{day_key(0)},region=s:fr"]
    assert expected_keys([{"name": "c", "kind": "dynamic", "values": []}], START_MS) is None
    hourly = [{"name": "h", "kind": "hourly", "start": "2025-03-01", "end": "2025-03-01T02:00:00"}]
    assert expected_keys(hourly, START_MS + DAY_MS) == [
        "h=t:2025-03-01T01:00:00.000000Z",
        "h=t:2025-03-01T00:00:00.000000Z",
    ]
