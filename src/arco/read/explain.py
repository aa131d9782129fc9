"""Why an asset is stale or unhealthy: a walk upstream to where it begins, and what to type about it.

Whoever was skipped in a run waits for somebody else of that run, so one look at the run's tasks leads to the first of them.
Whoever is late without having failed waits for an input that is in trouble; if none is, it is itself where it begins.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.fold.tables import HELD_OUTPUTS, MATERIALIZATIONS, PARTITIONS, TASKS
from arco.kernel.limits import EXPLAINED_ASSETS_MAX
from arco.read.answers import Answer, document, plain
from arco.read.causes import (
    Cause,
    Recommendation,
    held_cause,
    missing_cause,
    own_causes,
    recommendations,
    resting_cause,
    task_cause,
)
from arco.read.expected import expected_keys
from arco.read.facts import Facts, facts
from arco.read.graph import Direction, Graph, graph_of
from arco.read.health import Freshness, Health, LastRun, Quality, Status, freshness_of, health_of
from arco.read.naming import found_asset, names_of
from arco.read.reader import Reader
from arco.read.runs import Task, held_output, task

_LEVELS_MAX = 20
_RECENT = 10
_WAITED = {"skipped", "pending"}
_BAD = {"failed", "cancelled", "blocked", "quarantined"}


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to an asset."""

    at: datetime | None
    what: str
    run_id: str | None
    materialization_id: str


class Explanation(Answer, frozen=True, kw_only=True):
    """`causes` are where it begins, nearest first; none for an asset that is well."""

    asset: str
    asset_id: str
    status: Status
    reasons: tuple[str, ...]
    freshness: Freshness
    quality: Quality
    last_run: LastRun | None
    causes: tuple[Cause, ...]
    recommendations: tuple[Recommendation, ...]
    activity: tuple[Activity, ...]
    truncated: bool = False


class _Search:
    """One walk: what is known so far, and what was found."""

    def __init__(self, reader: Reader, graph: Graph, start: Facts, now_ms: int) -> None:
        self.reader, self.graph, self.now_ms = reader, graph, now_ms
        self.start = start
        self.known: dict[str, Facts] = {start.asset_id: start}
        self.causes: list[Cause] = []
        self.truncated = False

    async def walk(self) -> None:
        level: dict[str, tuple[str, ...]] = {self.start.asset_id: (self.start.name,)}
        for _ in range(_LEVELS_MAX):
            waiting = await self._settle(level)
            inputs = {node: self._above(node) for node in waiting}
            await self._learn({one for some in inputs.values() for one in some})
            following: dict[str, tuple[str, ...]] = {}
            for node, path in waiting.items():
                suspects = [one for one in inputs[node] if one in self.known and self._in_trouble(self.known[one])]
                if not suspects:
                    self.causes.append(resting_cause(self.known[node], path, self.now_ms))
                for one in suspects:
                    following.setdefault(one, (*path, self.known[one].name))
            level = following
            if not level:
                return
        self.truncated = True

    async def _settle(self, level: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Take the causes that lie on this level, or above it in the same run; what is left waits for its inputs."""
        waiting = {}
        for node, path in level.items():
            known = self.known[node]
            own = own_causes(known, path)
            if not own and known.last_task is not None and known.last_task.task.state in _WAITED:
                own = await self._in_the_run(known.last_task.task.run_id, node, path)
            self.causes += own
            if not own:
                waiting[node] = path
        return waiting

    async def _in_the_run(self, run_id: str, start: str, path: tuple[str, ...]) -> list[Cause]:
        """Who of the same run made this one wait."""
        relation = await self.reader.relation(TASKS, run_id)
        columns = ", ".join(Task.__struct_fields__)
        rows = await self.reader.rows(f"SELECT {columns} FROM {relation} WHERE state <> 'succeeded' ORDER BY task_id")
        ended = {row["asset_id"]: row for row in rows if row["state"] in _BAD | _WAITED}
        paths, level, guilty = {start: path}, [start], list[str]()
        names = await names_of(self.reader, [one for one in ended if one is not None])
        while level:
            here, level = level, []
            for node in here:
                for above in self._above(node):
                    if above in paths or above not in ended:
                        continue
                    paths[above] = (*paths[node], names.get(above, above))
                    (level if ended[above]["state"] in _WAITED else guilty).append(above)
        return await self._guilty(run_id, [task(ended[one]) for one in guilty], paths)

    async def _guilty(self, run_id: str, tasks: list[Task], paths: dict[str, tuple[str, ...]]) -> list[Cause]:
        relation = await self.reader.relation(HELD_OUTPUTS, {one.asset_id for one in tasks if one.asset_id is not None})
        rows = await self.reader.rows(f"SELECT * FROM {relation} WHERE run_id = ?", [run_id]) if tasks else []
        held = {row["task_id"]: held_output(row) for row in rows}
        causes = []
        for one in tasks:
            path = paths[one.asset_id or ""]
            kept = held.get(one.task_id)
            causes.append(task_cause(one, path[-1], path) if kept is None else held_cause(kept, path[-1], path))
        return causes

    async def _learn(self, nodes: Iterable[str]) -> None:
        missing = [one for one in nodes if one not in self.known]
        room = EXPLAINED_ASSETS_MAX - len(self.known)
        self.truncated |= len(missing) > room
        self.known |= await facts(self.reader, sorted(missing)[: max(0, room)])

    def _above(self, node: str) -> list[str]:
        return sorted({other for _, other in self.graph.beyond(node, Direction.UPSTREAM) if other != node})

    def _in_trouble(self, known: Facts) -> bool:
        """Late by its own deadline, or by the one that was missed below; or something went wrong with it."""
        state = known.last_task.task.state if known.last_task is not None else None
        if known.held or state in _BAD | _WAITED:
            return True
        fresh = freshness_of(known, self.now_ms)
        if fresh.last_materialized_at is None or fresh.within_sla is False:
            return True
        within = self.start.row["fresh_within_s"]
        late = freshness_of(self.start, self.now_ms).within_sla is False
        return late and within is not None and fresh.staleness_s is not None and fresh.staleness_s > within


async def explain(reader: Reader, asked: str, now_ms: int) -> Explanation:
    """Why an asset is as it is."""
    named = await found_asset(reader, asked)
    start = (await facts(reader, [named.asset_id]))[named.asset_id]
    healthy = health_of(start, now_ms)
    search = _Search(reader, await graph_of(reader), start, now_ms)
    if _needs_a_cause(start, healthy):
        await search.walk()
    missing = await _missing(reader, start, now_ms)
    if missing and healthy.status is not Status.UNKNOWN:
        search.causes.append(missing_cause(start, missing))
    return Explanation(
        snapshot_id=reader.cut.snapshot_id,
        asset=named.asset,
        asset_id=named.asset_id,
        status=healthy.status,
        reasons=healthy.reasons,
        freshness=healthy.freshness,
        quality=healthy.quality,
        last_run=healthy.last_run,
        causes=tuple(search.causes),
        recommendations=recommendations(named.asset, search.causes),
        activity=await _activity(reader, start),
        truncated=search.truncated,
    )


def _needs_a_cause(start: Facts, healthy: Health) -> bool:
    if healthy.status is Status.UNKNOWN:
        return True
    last = healthy.last_run.outcome if healthy.last_run is not None else None
    return healthy.freshness.within_sla is False or bool(start.held) or last in _BAD | _WAITED


async def _missing(reader: Reader, start: Facts, now_ms: int) -> list[str]:
    """The partitions that it should have and never had in the table that counts, newest first."""
    axes = document(start.row["partitioning"]) or []
    wanted = expected_keys(axes, now_ms) if axes and start.row["kind"] != "source" else None
    if not wanted or start.table is None:
        return []
    if start.published.partitions == len(wanted) and start.published.last_key == max(wanted):
        return []
    relation = await reader.relation(PARTITIONS, start.asset_id)
    rows = await reader.rows(f"SELECT partition_key FROM {relation} WHERE table_uuid = ?", [start.table.table_uuid])
    there = {row["partition_key"] for row in rows}
    return [key for key in wanted if key not in there]


async def _activity(reader: Reader, start: Facts) -> tuple[Activity, ...]:
    relation = await reader.relation(MATERIALIZATIONS, start.asset_id)
    rows = await reader.rows(
        f"""SELECT materialization_id, any_value(run_id) AS run_id, max(published_at) AS published_at,
            count(*) AS partitions, sum(rows)::BIGINT AS rows FROM {relation}
            GROUP BY materialization_id ORDER BY published_at DESC, materialization_id DESC LIMIT {_RECENT}"""
    )
    found = [
        Activity(
            at=plain(row["published_at"]),
            what=f"published {row['partitions']} partition{'s' if row['partitions'] != 1 else ''}, {row['rows']} rows",
            run_id=row["run_id"],
            materialization_id=row["materialization_id"],
        )
        for row in rows
    ]
    found += [
        Activity(
            at=one.held_at, what=f"held back ({one.action})", run_id=one.run_id, materialization_id=one.materialization_id
        )
        for one in start.held
    ]
    beginning: Any = datetime.min.replace(tzinfo=UTC)
    return tuple(sorted(found, key=lambda one: (one.at or beginning, one.materialization_id), reverse=True)[:_RECENT])
