"""What is folded, as metrics: runs, tasks and checks that have ended, and how each asset is.

Asked at most every few seconds, however many watch, and never waited for longer than a little: those who watch must see a server
whose store is silent, so they get what was found before. As of the published state, so all servers of a root say the same. There
is a series for each asset up to a limit: assets are named by projects that were deployed, never by requests.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from arco.kernel.errors import ArcoError
from arco.kernel.limits import METRICS_ASSETS_MAX, METRICS_PATIENCE_S, METRICS_STATE_S, READY_WORKSPACES_MAX
from arco.kernel.scope import Scope
from arco.read.assets import MADE_HERE, health_list
from arco.read.health import Health
from arco.read.measures import RUN_SECONDS, TASK_SECONDS, Durations, Measures, measures
from arco.read.pages import Window
from arco.storage.workspaces import workspaces
from arco.surface.http.server_state import ServerState

log = logging.getLogger("arco.http")

_HOME = ("tenant_id", "workspace_id")


@dataclass(frozen=True, slots=True)
class _Measured:
    """One workspace. `oldest_ms`: since when the oldest event waits to be folded, if one does."""

    measures: Measures
    health: tuple[Health, ...]
    oldest_ms: int | None


class StateMetrics:
    """The metrics of what is folded in the workspaces of one root."""

    def __init__(self, state: ServerState, patience_s: float = METRICS_PATIENCE_S) -> None:
        self._state = state
        self._patience_s = patience_s
        self._asked_s: float | None = None
        self._found: tuple[Metric, ...] = ()
        self._measured: dict[Scope, _Measured] = {}
        self._asking: asyncio.Task[None] | None = None

    async def families(self) -> tuple[Metric, ...]:
        now_s = self._state.clock.monotonic_s()
        if self._asked_s is None or now_s - self._asked_s > METRICS_STATE_S:
            await asyncio.wait({self._looking()}, timeout=self._patience_s)
        return self._found

    async def end(self) -> None:
        """Leave nothing running behind."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    def _looking(self) -> "asyncio.Task[None]":
        """One look at a time, however many ask."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._renew())
        return self._asking

    async def _renew(self) -> None:
        began_s = self._state.clock.monotonic_s()
        self._measured = await self._look()
        made, now_ms = _Families(), self._state.clock.now_ms()
        for scope, one in self._measured.items():
            home = (scope.tenant, scope.workspace)
            made.add_measures(home, one.measures)
            made.add_health(home, one.health)
            made.lag.add_metric(home, 0.0 if one.oldest_ms is None else max(0.0, (now_ms - one.oldest_ms) / 1000))
        self._found, self._asked_s = made.all(), began_s

    async def _look(self) -> dict[Scope, _Measured]:
        """Every workspace as it is; of what cannot be looked at, what was found before."""
        try:
            scopes = await workspaces(self._state.store, READY_WORKSPACES_MAX)
        except ArcoError as error:
            log.warning("the workspaces cannot be measured: %s", error.one_line())
            return self._measured
        found: dict[Scope, _Measured] = {}
        for scope in scopes:
            try:
                one = await self._measure(scope)
            except ArcoError as error:
                log.warning("what is folded in %s cannot be measured: %s", scope.warehouse, error.one_line())
                one = self._measured.get(scope)
            if one is not None:
                found[scope] = one
        return found

    async def _measure(self, scope: Scope) -> _Measured | None:
        library = self._state.libraries.of(scope)
        reader = (await library.open()).reader
        if not reader.cut.snapshot_id:
            return None  # nothing is folded there yet
        found, now_ms = await measures(reader), self._state.clock.now_ms()
        page = await health_list(reader, now_ms, MADE_HERE, Window(limit=METRICS_ASSETS_MAX))
        return _Measured(found, tuple(page.health), await library.oldest_unfolded_ms())


class _Families:
    """The names that the platform's design gives them."""

    def __init__(self) -> None:
        self.runs = CounterMetricFamily("servo_runs", "Total runs by outcome", labels=[*_HOME, "outcome"])
        self.run_seconds = HistogramMetricFamily("servo_run_duration_seconds", "Run duration in seconds", labels=_HOME)
        by_namespace = [*_HOME, "asset_namespace"]
        self.tasks = CounterMetricFamily("servo_tasks", "Total tasks by outcome", labels=[*by_namespace, "outcome"])
        self.task_seconds = HistogramMetricFamily(
            "servo_task_duration_seconds", "Task duration in seconds", labels=by_namespace
        )
        self.checks = CounterMetricFamily(
            "servo_checks", "Total quality checks by result", labels=[*_HOME, "check_type", "result"]
        )
        self.lag = GaugeMetricFamily("servo_catalog_sync_lag_seconds", "Time since oldest unsynced event", labels=_HOME)
        by_asset = [*_HOME, "asset_key"]
        self.freshness = GaugeMetricFamily(
            "arco_asset_freshness_seconds", "Time since last successful materialization", labels=by_asset
        )
        self.pass_rate = GaugeMetricFamily("arco_asset_quality_pass_rate", "Recent check pass rate", labels=by_asset)

    def add_measures(self, home: Sequence[str], found: Measures) -> None:
        for outcome, count in found.runs.items():
            self.runs.add_metric([*home, outcome], count)
        self.run_seconds.add_metric(home, _buckets(RUN_SECONDS, found.run_seconds), found.run_seconds.total_s)
        for (namespace, outcome), count in found.tasks.items():
            self.tasks.add_metric([*home, namespace, outcome], count)
        for namespace, took in found.task_seconds.items():
            self.task_seconds.add_metric([*home, namespace], _buckets(TASK_SECONDS, took), took.total_s)
        for (check_type, result), count in found.checks.items():
            self.checks.add_metric([*home, check_type, result], count)

    def add_health(self, home: Sequence[str], found: Iterable[Health]) -> None:
        for one in found:
            if one.freshness.staleness_s is not None:
                self.freshness.add_metric([*home, one.asset], one.freshness.staleness_s)
            if one.quality.pass_rate is not None:
                self.pass_rate.add_metric([*home, one.asset], one.quality.pass_rate)

    def all(self) -> tuple[Metric, ...]:
        return tuple(vars(self).values())


def _buckets(bounds: Sequence[float], took: Durations) -> list[tuple[str, float]]:
    return [*((str(bound), float(count)) for bound, count in zip(bounds, took.at_most, strict=True)), ("+Inf", took.count)]
