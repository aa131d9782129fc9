"""Why an asset is stale or unhealthy: a walk upstream to where it begins, and what to type about it.

Whoever was skipped in a run waits for somebody else, so one look at the tasks of the last runs leads to the first of them.
Whoever is late without having failed waits for an input that is in trouble; if none is, it is itself where it begins.
"""

import asyncio
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.fold.tables import HELD_OUTPUTS, MATERIALIZATIONS, PARTITIONS, TASKS
from arco.kernel.limits import EXPLAINED_ASSETS_MAX, EXPLAINED_NODES_MAX
from arco.read.answers import Answer, document, plain
from arco.read.causes import (
    Cause,
    Recommendation,
    failing_cause,
    held_cause,
    missing_cause,
    outside_cause,
    own_causes,
    recommendations,
    resting_cause,
    task_cause,
)
from arco.read.expected import expected_keys
from arco.read.facts import Facts, facts, last_run_ids, last_runs
from arco.read.graph import Direction, Graph, graph_of, reach
from arco.read.health import Freshness, Health, LastRun, Quality, Status, freshness_of, health_of
from arco.read.naming import asset_names, found_asset, names_of
from arco.read.publishers import counted
from arco.read.reader import Reader, Rows
from arco.read.runs import HeldOutput, Task, held_output, task
from arco.read.views import text

_LEVELS_MAX = 20
_RECENT = 10
_WAITED = {"skipped", "pending"}
Paths = dict[str, tuple[str, ...]]
_BAD = {"failed", "cancelled", "blocked", "quarantined"}
_UNSAID = {"asset": None, "attempt": None, "worker": None}
"""What no cause says of a task: it is not read."""
_SAID = ", ".join(field for field in Task.__struct_fields__ if field not in _UNSAID)


_STOPPED = f"state IN ({', '.join(map(text, sorted(_BAD | _WAITED)))})"


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
        self.seen: set[str] = set()
        self.ended: dict[str, dict[str, Any]] = {}
        self.looked_into: dict[str, Rows] = {}
        self.looked_around = False
        self.truncated = False

    async def walk(self, *, needed: bool) -> None:
        """Look for causes, if there is anything to be explained."""
        if not needed:
            return
        level: Paths = {self.start.asset_id: (self.start.name,)}
        for _ in range(_LEVELS_MAX):
            ends = await self._settle(level)
            inputs = {node: self._above(node) for node in ends}
            await self._learn({*ends, *(one for some in inputs.values() for one in some)})
            level = {}
            for node, path in ends.items():
                suspects = [one for one in inputs[node] if self._is_suspect(one)]
                if not suspects and node in self.known:
                    self.causes.append(resting_cause(self.known[node], path, self.now_ms))
                for one in suspects:
                    level.setdefault(one, (*path, self.known[one].name))
            if not level:
                return
        self.truncated = True

    async def _settle(self, level: Paths) -> Paths:
        """Take the causes that lie on this level, or above it in the same run; what is left waits for inputs elsewhere."""
        self.seen |= level.keys()
        ends: Paths = {}
        waiting: Paths = {}
        for node, path in level.items():
            known = self.known[node]
            own = own_causes(known, path)
            self.causes += own
            if not own and known.last_task is not None and known.last_task.task.state in _WAITED:
                waiting[node] = path
            elif not own:
                ends[node] = path
        return ends | await self._made_to_wait(waiting) if waiting else ends

    async def _made_to_wait(self, start: Paths) -> Paths:
        """Take whoever made these wait in the last runs as causes. What waits for nobody there is given back."""
        below: dict[str, str] = {}
        runs = {known.task.run_id for node in start if (known := self.known[node].last_task) is not None}
        # What waits in its run nearly always waits for somebody in another: all of them are read at once.
        around = () if self.looked_around else await self._last_runs()
        await self._look_into({*runs, *around})
        self._know_of(runs)
        guilty, ends = self._climbed(list(start), below)
        if ends and not self.looked_around:
            self.looked_around = True
            self._know_of(around)
            more, ends = self._climbed(ends, below)
            guilty += more
        paths = await self._paths(start, below, [*guilty, *ends])
        await self._take([task(_UNSAID | self.ended[one]) for one in guilty], paths)
        return {node: paths[node] for node in ends}

    def _climbed(self, level: list[str], below: dict[str, str]) -> tuple[list[str], list[str]]:
        """Upstream along what waited: who went wrong, and who waits for nobody that was looked at."""
        guilty, ends = list[str](), list[str]()
        while level:
            here, level = level, []
            for node in here:
                above = [one for one in self._above(node) if one in self.ended]
                if not above:
                    ends.append(node)
                for one in above:
                    if one not in self.seen:
                        self.seen.add(one)
                        below[one] = node
                        (level if self.ended[one]["state"] in _WAITED else guilty).append(one)
        return guilty, ends

    async def _look_into(self, runs: Collection[str]) -> None:
        """Read what did not succeed in some runs. That of the last run of each project is in memory."""
        unknown = set(runs) - self.looked_into.keys()
        self.looked_into |= {run_id: [] for run_id in unknown}
        last = unknown & await last_run_ids(self.reader)
        older = unknown - last
        rows = await self._unsuccessful(await _stopped(self.reader), last) if last else []
        rows += await self._unsuccessful(await self.reader.relation(TASKS, older), older) if older else []
        for row in rows:
            self.looked_into[row["run_id"]].append(row)

    async def _unsuccessful(self, tasks: str, runs: Collection[str]) -> Rows:
        ids = ", ".join(map(text, sorted(runs)))
        return await self.reader.rows(f"SELECT {_SAID} FROM {tasks} WHERE run_id IN ({ids}) AND {_STOPPED}")

    def _know_of(self, runs: Collection[str]) -> None:
        """What was read of some runs counts from here on: of an asset the last that began."""
        found = sorted((row for run_id in set(runs) for row in self.looked_into[run_id]), key=_begun)
        self.ended |= {row["asset_id"]: row for row in found}

    async def _last_runs(self) -> list[str]:
        """The last run of each project that has a part upstream."""
        cone = reach(self.graph, self.start.asset_id, Direction.UPSTREAM, nodes_max=EXPLAINED_NODES_MAX)
        names, runs = await asset_names(self.reader), await last_runs(self.reader)
        # As one text of JSON: DuckDB takes long over a list of hundreds of values.
        listed = text(msgspec.json.encode(list(cone.depths)).decode())
        rows = await self.reader.rows(
            f"""SELECT run_id FROM {runs} WHERE project IN (SELECT project FROM {names} WHERE asset_id IN (
                SELECT unnest(from_json({listed}, '["VARCHAR"]'))))"""
        )
        return [row["run_id"] for row in rows]

    async def _paths(self, start: Paths, below: dict[str, str], nodes: list[str]) -> Paths:
        """The ways from what was asked about to some nodes, in names."""
        ways: dict[str, list[str]] = {}
        for node in nodes:
            way = [node]
            while way[-1] in below:
                way.append(below[way[-1]])
            ways[node] = way[::-1]
        names = await names_of(self.reader, {one for way in ways.values() for one in way[1:]})
        return {node: (*start[way[0]], *(names.get(one, one) for one in way[1:])) for node, way in ways.items()}

    async def _take(self, tasks: list[Task], paths: Paths) -> None:
        """Tasks that went wrong, as causes; with the check where one held the output back."""
        stopped = {one.asset_id for one in tasks if one.asset_id is not None and one.state in {"blocked", "quarantined"}}
        held = {}
        if stopped:
            relation = await self.reader.relation(HELD_OUTPUTS, stopped)
            rows = await self.reader.rows(f"SELECT * FROM {relation} ORDER BY held_at")
            held = {(row["run_id"], row["task_id"]): held_output(row) for row in rows}
        for one in tasks:
            path = paths[one.asset_id or ""]
            kept = held.get((one.run_id, one.task_id))
            self.causes.append(task_cause(one, path[-1], path) if kept is None else held_cause(kept, path[-1], path))

    async def _learn(self, nodes: Iterable[str]) -> None:
        missing = [one for one in nodes if one not in self.known]
        room = EXPLAINED_ASSETS_MAX - len(self.known)
        self.truncated |= len(missing) > room
        self.known |= await facts(self.reader, sorted(missing)[: max(0, room)], whole_rows=False)

    def _above(self, node: str) -> list[str]:
        return sorted({other for _, other in self.graph.beyond(node, Direction.UPSTREAM) if other != node})

    def _is_suspect(self, node: str) -> bool:
        """In a cycle nobody waits for whoever waits for it."""
        return node in self.known and node not in self.seen and self._in_trouble(self.known[node])

    def _in_trouble(self, known: Facts) -> bool:
        """Late by its own deadline, or by the one that was missed below; or something went wrong with it."""
        state = known.last_task.task.state if known.last_task is not None else None
        if known.held or known.quarantined or state in _BAD | _WAITED:
            return True
        fresh = freshness_of(known, self.now_ms)
        if fresh.last_materialized_at is None or fresh.within_sla is False:
            return True
        within = self.start.row["fresh_within_s"]
        late = freshness_of(self.start, self.now_ms).within_sla is False
        return late and within is not None and fresh.staleness_s is not None and fresh.staleness_s > within


def _begun(row: dict[str, Any]) -> tuple[bool, datetime, str]:
    return (row["started_at"] is None, row["started_at"] or datetime.min, row["task_id"])  # noqa: DTZ901 - DuckDB has no zones


async def _stopped(reader: Reader) -> str:
    """What did not succeed in the last run of each project: most questions are about it."""

    async def select() -> str:
        relation = await reader.relation(TASKS, await last_run_ids(reader))
        return f"SELECT {_SAID} FROM {relation} WHERE {_STOPPED}"

    return await reader.kept("stopped_tasks", select)


async def explain(reader: Reader, asked: str, now_ms: int) -> Explanation:
    """Why an asset is as it is."""
    named = await found_asset(reader, asked)
    known, graph, published = await asyncio.gather(
        facts(reader, [named.asset_id], whole_rows=False), graph_of(reader), _published(reader, named.asset_id)
    )
    start = known[named.asset_id]
    healthy = health_of(start, now_ms)
    search = _Search(reader, graph, start, now_ms)
    missing, _ = await asyncio.gather(_missing(reader, start, now_ms), search.walk(needed=_needs_a_cause(start, healthy)))
    if missing and healthy.status is not Status.UNKNOWN:
        search.causes.append(missing_cause(start, missing))
    told = {check for cause in search.causes if cause.asset_id == start.asset_id for check in cause.checks}
    failing = failing_cause(start, healthy.quality, told)
    outside = outside_cause(start)
    search.causes += [one for one in (failing, outside) if one is not None]
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
        activity=_newest([*published, *map(_held_back, start.held)]),
        truncated=search.truncated,
    )


def _needs_a_cause(start: Facts, healthy: Health) -> bool:
    if healthy.status is Status.UNKNOWN:
        return True
    last = healthy.last_run.outcome if healthy.last_run is not None else None
    held = bool(start.held or start.quarantined)
    return healthy.freshness.within_sla is False or held or last in _BAD | _WAITED


async def _missing(reader: Reader, start: Facts, now_ms: int) -> list[str]:
    """The partitions that it should have and never had in the table that counts, newest first."""
    axes = document(start.row["partitioning"]) or []
    wanted = expected_keys(axes, now_ms) if axes and start.row["kind"] != "source" else None
    if not wanted or start.table is None:
        return []
    if start.published.partitions == len(wanted) and start.published.last_key == max(wanted):
        return []
    relation = await counted(reader, PARTITIONS, [start.asset_id])
    rows = await reader.rows(f"SELECT partition_key FROM {relation} WHERE table_uuid = ?", [start.table.table_uuid])
    there = {row["partition_key"] for row in rows}
    return [key for key in wanted if key not in there]


async def _published(reader: Reader, asset_id: str) -> list[Activity]:
    """Its last publishes, newest first."""
    relation = await reader.relation(MATERIALIZATIONS, asset_id)
    rows = await reader.rows(
        f"""SELECT materialization_id, any_value(run_id) AS run_id, max(published_at) AS published_at,
            count(*) AS partitions, sum(rows)::BIGINT AS rows FROM {relation}
            GROUP BY materialization_id ORDER BY published_at DESC, materialization_id DESC LIMIT {_RECENT}"""
    )
    return [
        Activity(
            at=plain(row["published_at"]),
            what=f"published {row['partitions']} partition{'s' if row['partitions'] != 1 else ''}, {row['rows']} rows",
            run_id=row["run_id"],
            materialization_id=row["materialization_id"],
        )
        for row in rows
    ]


def _held_back(one: HeldOutput) -> Activity:
    return Activity(
        at=one.held_at, what=f"held back ({one.action})", run_id=one.run_id, materialization_id=one.materialization_id
    )


def _newest(found: list[Activity]) -> tuple[Activity, ...]:
    beginning: Any = datetime.min.replace(tzinfo=UTC)
    return tuple(sorted(found, key=lambda one: (one.at or beginning, one.materialization_id), reverse=True)[:_RECENT])
