"""What a server counts, in Prometheus' own form: requests, the store, commits, queues, memory that was right or not.

With several workers each counts into files that they share, so that whichever is asked tells of all, the dead included. Labels
have few values by construction: routes as they are declared, words from this program. What must never enter: a label that a
client can choose.
"""

import asyncio
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from arco.kernel.limits import METRICS_WRITTEN_S
from arco.kernel.scope import Scope
from arco.kernel.tallies import Tallied
from arco.surface.http.series import Count, Observed, Spread

# When a series began says nothing that its first sample does not, and would double what is told.
disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TRIPS = (0, 1, 2, 3, 4, 5, 6, 8, 12, 20)
_CACHES = {
    Tallied.NAMES_HIT: ("names", "hit"),
    Tallied.NAMES_MISS: ("names", "miss"),
    Tallied.TABLE_HIT: ("table", "hit"),
    Tallied.TABLE_MISS: ("table", "miss"),
    Tallied.ANSWER_HIT: ("answer", "hit"),
    Tallied.ANSWER_MISS: ("answer", "miss"),
}
_COMMITS = {Tallied.COMMIT_LANDED: "landed", Tallied.COMMIT_REFUSED: "refused"}
_SWINGS = {Tallied.SWING_LANDED: "landed", Tallied.SWING_LOST: "lost", Tallied.SWING_UNKNOWN: "unknown"}
_SHED = {Tallied.QUEUE_FULL: "queue_full", Tallied.QUEUE_TOO_OLD: "queue_too_old"}
_STAGED = {
    Tallied.STAGED: "staged",
    Tallied.STAGED_CREATED: "created",
    Tallied.STAGED_REFUSED: "refused",
    Tallied.STAGED_EXPIRED: "expired",
    Tallied.STAGED_ABANDONED: "abandoned",
}


class Metrics:
    """The counts of one process. `folder` is where the workers of one server share theirs."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._registry = own = CollectorRegistry()
        self._requests = Counter("arco_http_requests", "Answers to clients", ["operation", "status"], registry=own)
        self._seconds = Spread(
            "arco_http_request_seconds",
            "From a request's head to its answer",
            ["operation"],
            buckets=_SECONDS,
            registry=own,
        )
        self._trips = Spread(
            "arco_store_round_trips",
            "Sequential round trips to the store before the answer",
            ["operation"],
            buckets=_TRIPS,
            registry=own,
        )
        self._store = Counter(
            "arco_store_requests", "Requests to the store, also after the answer", ["operation", "request"], registry=own
        )
        self._store_seconds = Spread(
            "arco_store_request_seconds", "One request to the store", ["request"], buckets=_SECONDS, registry=own
        )
        self._shed = Counter("arco_http_shed", "Requests sent away before any effect", ["reason"], registry=own)
        self._handed_over = Counter(
            "arco_handed_over", "Requests that another worker owned, and who did them", ["done"], registry=own
        )
        self._under_way = Count(
            Gauge("arco_http_requests_under_way", "Requests worked on", registry=own, multiprocess_mode="livesum")
        )
        self.connections = Gauge("arco_http_connections", "Open connections", registry=own, multiprocess_mode="livesum")
        self._synced = Histogram(
            "servo_catalog_sync_duration_seconds",
            "Catalog sync latency: from an event's append to where it can be seen",
            ["tenant_id", "workspace_id", "event_type"],
            buckets=(0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0),
            registry=own,
        )
        self._counted = {what: Count(series) for what, series in self._tallied(own).items()}
        self._waiting: list[Count | Observed] = [self._under_way, *self._counted.values()]
        self._is_written_soon = False
        self._of_requests = cache(self._series_of_requests)
        self._of_store = cache(self._series_of_store)
        self._of_spread = cache(self._series_of_spread)
        self._queue = Gauge(
            "arco_commit_queue_length",
            "Commits that wait for their turn at a table",
            registry=own,
            multiprocess_mode="livesum",
        )

    # Finding a series by its labels takes longer than counting: those of routes are few, and kept.

    def _series_of_requests(self, operation: str, status: int) -> tuple[Count, Observed, Observed]:
        counted = self._count(self._requests.labels(operation, str(status)))
        return counted, self._of_spread(self._seconds, operation), self._of_spread(self._trips, operation)

    def _series_of_store(self, operation: str, kind: str) -> tuple[Count, Observed]:
        return self._count(self._store.labels(operation, kind)), self._of_spread(self._store_seconds, kind)

    def _series_of_spread(self, family: Spread, label: str) -> Observed:
        series = Observed(family.labels(label))
        self._waiting.append(series)
        return series

    def _count(self, series: Counter) -> Count:
        counted = Count(series)
        self._waiting.append(counted)
        return counted

    def _tallied(self, own: CollectorRegistry) -> dict[Tallied, Counter]:
        families = (
            (Counter("arco_commits", "Commits to tables and views", ["outcome"], registry=own), _COMMITS),
            (
                Counter("arco_commit_swings", "Swings of pointers; lost ones are conflicts", ["outcome"], registry=own),
                _SWINGS,
            ),
            (Counter("arco_staged_creates", "Staged creates, and how they ended", ["ending"], registry=own), _STAGED),
            (self._shed, _SHED),
        )
        found = {what: family.labels(word) for family, words in families for what, word in words.items()}
        caches = Counter(
            "arco_cache_lookups", "What was remembered, and whether it held", ["cache", "result"], registry=own
        )
        found |= {what: caches.labels(*words) for what, words in _CACHES.items()}
        retried = Counter("arco_commit_retries", "Commits tried again on newer state", registry=own)
        grouped = Counter("arco_commits_grouped", "Commits that shared a swing with others", registry=own)
        return {**found, Tallied.COMMIT_RETRIED: retried, Tallied.GROUPED: grouped}

    # What happens

    def working(self, by: int) -> None:
        """So many requests more are worked on, or fewer."""
        self._under_way.add(by)
        self._written_soon()

    def request(self, operation: str, status: int, took_s: float, trips: int) -> None:
        answers, seconds, round_trips = self._of_requests(operation, status)
        answers.add()
        seconds.add(took_s)
        round_trips.add(trips)
        self._written_soon()

    def store_requests(self, operation: str, kind: str, count: int, took_s: float) -> None:
        requests, seconds = self._of_store(operation, kind)
        requests.add(count)
        seconds.add(took_s / count, count)
        self._written_soon()

    def shed(self, reason: str) -> None:
        self._shed.labels(reason).inc()

    def handed_over(self, done: str) -> None:
        self._handed_over.labels(done).inc()

    def synced(self, scope: Scope, event_type: str, seconds: float, segments: int) -> None:
        """So many segments with events of a type can be seen, so long after they were appended."""
        series = self._synced.labels(scope.tenant, scope.workspace, event_type)
        for _ in range(segments):
            series.observe(seconds)

    def add(self, what: Tallied, by: int = 1) -> None:
        if what is Tallied.QUEUED:
            self._queue.inc(by)
            return
        counted = self._counted[what]
        counted.add(by)
        if what in _CACHES:
            self._written_soon()
        else:
            counted.write()

    def _written_soon(self) -> None:
        """What every request counts, other workers tell a moment later; of commits they tell at once."""
        if self._folder is not None and not self._is_written_soon:
            self._is_written_soon = True
            asyncio.get_running_loop().call_later(METRICS_WRITTEN_S, self.write)

    def write(self) -> None:
        """Write what was counted to where it is told from. A worker that is killed takes with it what it has counted since."""
        self._is_written_soon = False
        for series in self._waiting:
            series.write()

    # What is told

    def text(self, more: Iterable[Metric] = ()) -> bytes:
        """Everything that this process counted, or all workers together; and what was found elsewhere."""
        self.write()
        shown = CollectorRegistry()
        if self._folder is None:
            shown.register(_Given(self._registry.collect()))
        else:
            MultiProcessCollector(shown, str(self._folder))  # type: ignore[no-untyped-call]
        shown.register(_Given(more))
        return generate_latest(shown)


class _Given(Collector):
    """Families that are there already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        return self._families

    def describe(self) -> Iterable[Metric]:
        return ()
