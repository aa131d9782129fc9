"""What is known of some assets at once, for pages, health and explanations: rows, publishes, checks, what is held back, tasks.

Many assets cost one round of queries, pruned to their buckets. Nothing is judged here; that is health's.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from arco.fold.tables import ASSETS, HELD_OUTPUTS, PARTITIONS, RUNS, SETTLED_OUTPUTS, TASKS
from arco.kernel.limits import EXPLAINED_RUNS_MAX
from arco.read.answers import document, plain
from arco.read.boxes import count, holds
from arco.read.checks import CheckResult, latest_by_asset
from arco.read.incarnations import Incarnation, newest, tables_of
from arco.read.outside import OutsideCommit, outside_commits
from arco.read.plain_tables import plain_rows
from arco.read.publishers import counted
from arco.read.quarantines import Quarantine, Word, standing, words_about
from arco.read.reader import Reader, Rows
from arco.read.runs import HeldOutput, Task, held_output, task
from arco.read.views import text

_TASK_COLUMNS = ", ".join(Task.__struct_fields__)
_JUDGED = "asset_id, asset, kind, project, partitioning, fresh_within_s"


@dataclass(frozen=True, slots=True)
class Published:
    """What the current partitions of an asset come to."""

    partitions: int = 0
    marked: int = 0
    rows: int = 0
    bytes: int = 0
    files: int = 0
    first_key: str | None = None
    last_key: str | None = None
    last_at: datetime | None = None
    last_run_id: str | None = None
    last_materialization_id: str | None = None


@dataclass(frozen=True, slots=True)
class LastTask:
    """The task of an asset in the newest run that it was part of."""

    task: Task
    run_created_at: datetime | None


@dataclass(frozen=True, slots=True)
class Facts:
    asset_id: str
    row: dict[str, Any]
    table: Incarnation | None
    published: Published
    checks: tuple[CheckResult, ...] = ()
    held: tuple[HeldOutput, ...] = ()
    quarantined: tuple[Quarantine, ...] = ()
    last_task: LastTask | None = None
    outside: OutsideCommit | None = None
    """What others wrote over some of its current partitions."""

    @property
    def name(self) -> str:
        return str(self.row["asset"])

    @property
    def written_by_others(self) -> bool:
        return _written_by_others(self.row)

    @property
    def last_change(self) -> datetime | None:
        """When it last had something new: a publish, or a commit from outside."""
        committed = plain(self.table.row["committed_at"]) if self.table is not None and self.table.row is not None else None
        return max((at for at in (self.published.last_at, committed) if at is not None), default=None)


async def facts(reader: Reader, asset_ids: Collection[str], *, whole_rows: bool = True) -> dict[str, Facts]:
    """Of every asset that is known. Without whole rows, of their rows only what they are judged by."""
    ids = sorted(set(asset_ids))
    if not ids:
        return {}
    rows, (tables, current), checks, held, words = await asyncio.gather(
        _assets(reader, ids, "*" if whole_rows else _JUDGED),
        published(reader, ids),
        latest_by_asset(reader, ids),
        _held(reader, ids),
        words_about(reader, ids),
    )
    kept = await _still_held(reader, rows, held)
    quarantined = await _quarantined(reader, tables, words)
    tasks = await _last_tasks(reader, rows, current)
    outside = await _outside(reader, rows, tables, current)
    return {
        asset_id: Facts(
            asset_id,
            row,
            tables.get(asset_id),
            current.get(asset_id, Published()),
            tuple(checks.get(asset_id, ())),
            tuple(kept.get(asset_id, ())),
            quarantined.get(asset_id, ()),
            tasks.get(asset_id),
            outside.get(asset_id),
        )
        for asset_id, row in rows.items()
    }


def kinds_of(row: dict[str, Any]) -> dict[str, str]:
    """The kind of each dimension of an asset."""
    return {axis["name"]: axis["kind"] for axis in document(row["partitioning"]) or ()}


async def _assets(reader: Reader, ids: list[str], columns: str) -> dict[str, dict[str, Any]]:
    relation = await reader.relation(ASSETS, ids)
    found = {row["asset_id"]: row for row in await reader.rows(f"SELECT {columns} FROM {relation} WHERE asset IS NOT NULL")}
    others = [one for one in ids if one not in found]
    plain = await plain_rows(reader, others) if others else []
    return {one: row | {"made_by_project": True} for one, row in found.items()} | {
        row["asset_id"]: row | {"made_by_project": False} for row in plain
    }


async def published(reader: Reader, ids: Collection[str]) -> tuple[dict[str, Incarnation], dict[str, Published]]:
    """The table that counts of each asset, and what its partitions come to."""
    committed = await tables_of(reader, ids)
    relation = await counted(reader, PARTITIONS, ids)
    outside = " ".join(
        f"WHEN {text(row['table_uuid'])} THEN {row['external_sequence_number']}"
        for row in committed
        if row["external_sequence_number"] is not None
    )
    external = f"CASE table_uuid {outside} END" if outside else "NULL"
    rows = await reader.rows(
        f"""SELECT asset_id, table_uuid, count(*) AS partitions, sum(rows)::BIGINT AS rows, sum(bytes)::BIGINT AS bytes,
            sum(files)::BIGINT AS files, min(partition_key) AS first_key, max(partition_key) AS last_key,
            min(first_published_at) AS born, max(published_at) AS last_at,
            arg_max(run_id, published_at) AS last_run_id, arg_max(materialization_id, published_at) AS last_materialization_id,
            count(*) FILTER (coalesce(sequence_number, -1) < {external}) AS marked
            FROM {relation} GROUP BY asset_id, table_uuid"""
    )
    known: dict[str, dict[str, Incarnation]] = {}
    for row in rows:
        known.setdefault(row["asset_id"], {})[row["table_uuid"]] = Incarnation(row["table_uuid"], row["born"], None)
    for row in committed:
        known.setdefault(row["asset_id"], {})[row["table_uuid"]] = Incarnation(
            row["table_uuid"], row["first_commit_at"], row
        )
    counts = {asset_id: table for asset_id, some in known.items() if (table := newest(some.values())) is not None}
    fields = Published.__dataclass_fields__
    found = {
        row["asset_id"]: Published(**{name: plain(row[name]) for name in fields if row[name] is not None})
        for row in rows
        if counts[row["asset_id"]].table_uuid == row["table_uuid"]
    }
    return counts, found


async def _held(reader: Reader, ids: list[str]) -> list[HeldOutput]:
    if not reader.may_have(HELD_OUTPUTS, ids):
        return []
    relation = await reader.relation(HELD_OUTPUTS, ids)
    found = [held_output(row) for row in await reader.rows(f"SELECT * FROM {relation} ORDER BY held_at DESC")]
    if not found or not reader.may_have(SETTLED_OUTPUTS, ids):
        return found
    decided = await reader.relation(SETTLED_OUTPUTS, ids)
    settled = {row["materialization_id"] for row in await reader.rows(f"SELECT * FROM {decided} WHERE what = 'output'")}
    return [one for one in found if one.materialization_id not in settled]


async def _still_held(
    reader: Reader, rows: dict[str, dict[str, Any]], held: Iterable[HeldOutput]
) -> dict[str, list[HeldOutput]]:
    """Held outputs that nothing published later stands in the place of, partition by partition."""
    outputs = [one for one in held if one.asset_id in rows]
    if not outputs:
        return {}
    relation = await counted(reader, PARTITIONS, {one.asset_id for one in outputs})
    since = min(one.held_at for one in outputs if one.held_at is not None).replace(tzinfo=None)
    later = await reader.rows(
        f"SELECT DISTINCT asset_id, partition_key, published_at FROM {relation} WHERE published_at > ?", [since]
    )
    kept: dict[str, list[HeldOutput]] = {}
    for one in outputs:
        replaced = {
            row["partition_key"]
            for row in later
            if row["asset_id"] == one.asset_id
            and (one.held_at is None or plain(row["published_at"]) > one.held_at)
            and holds(one.partitions, row["partition_key"])
        }
        if len(replaced) < max(1, count(one.partitions, kinds_of(rows[one.asset_id]))):
            kept.setdefault(one.asset_id, []).append(one)
    return kept


async def _quarantined(
    reader: Reader, tables: dict[str, Incarnation], words: dict[str, list[Word]]
) -> dict[str, tuple[Quarantine, ...]]:
    """What people hold back of the current partitions of each asset."""
    said = [one for one in words if one in tables]
    if not said:
        return {}
    rows = await reader.rows(
        f"SELECT asset_id, table_uuid, partition_key, materialization_id FROM {await counted(reader, PARTITIONS, said)}"
    )
    current: dict[str, Rows] = {}
    for row in rows:
        if row["table_uuid"] == tables[row["asset_id"]].table_uuid:
            current.setdefault(row["asset_id"], []).append(row)
    return {one: standing(words[one], some) for one, some in current.items()}


def _written_by_others(row: dict[str, Any]) -> bool:
    """Every commit to it counts, whoever made it."""
    return row["kind"] == "source" or not row["made_by_project"]


async def _outside(
    reader: Reader, rows: dict[str, dict[str, Any]], tables: dict[str, Incarnation], current: dict[str, Published]
) -> dict[str, OutsideCommit]:
    """Who wrote over partitions of assets that are made here. Most have none, and cost nothing."""
    marked = [one for one in rows if one in current and current[one].marked and not _written_by_others(rows[one])]
    return await outside_commits(reader, {one: tables[one] for one in marked})


async def _last_tasks(
    reader: Reader, rows: dict[str, dict[str, Any]], current: dict[str, Published]
) -> dict[str, LastTask]:
    """The newest task of each asset, looked for in the runs of its project from the run of its last publish on."""
    if not rows:
        return {}
    recent = await runs_by_project(reader)
    last = {asset_id: current[asset_id].last_run_id for asset_id in rows if asset_id in current}
    projects = ", ".join(sorted({text(row["project"]) for row in rows.values() if row["project"]})) or "NULL"
    runs = ", ".join(sorted({text(run_id) for run_id in last.values() if run_id})) or "NULL"
    # An asset that was never published has no run to begin with: the newest runs of its project have to do.
    since = f"(SELECT min(begun) FROM {recent} WHERE run_id IN ({runs}))" if len(last) == len(rows) else "'-infinity'"
    found = await reader.rows(
        f"""SELECT run_id, begun FROM {recent} WHERE project IN ({projects})
            AND begun >= coalesce({since}, '-infinity'::TIMESTAMP)
            QUALIFY row_number() OVER (PARTITION BY project ORDER BY begun DESC, run_id DESC) <= {EXPLAINED_RUNS_MAX}"""
    )
    begun: dict[str, datetime | None] = {run_id: None for run_id in last.values() if run_id}
    begun |= {row["run_id"]: plain(row["begun"]) for row in found}
    return await _tasks_in(reader, list(rows), begun)


async def _tasks_in(reader: Reader, ids: list[str], begun: dict[str, datetime | None]) -> dict[str, LastTask]:
    """The newest task of each asset in some runs. Mostly it is in the newest of them: the others are read only if it is not."""
    newest_first = sorted(begun, key=lambda run_id: (_when(begun[run_id]), run_id), reverse=True)
    last: dict[str, LastTask] = {}
    for runs in (newest_first[:1], newest_first[1:]):
        missing = [one for one in ids if one not in last]
        if runs and missing:
            relation, listed = await reader.relation(TASKS, runs), ", ".join(map(text, missing))
            tasks = await reader.rows(f"SELECT {_TASK_COLUMNS} FROM {relation} WHERE asset_id IN ({listed})")
            last |= _newest_tasks(tasks, begun)
    return last


async def runs_by_project(reader: Reader) -> str:
    """When the runs of each project began, as a relation."""

    async def select() -> str:
        runs = await reader.relation(RUNS)
        return (
            f"SELECT project, run_id, coalesce(created_at, started_at) AS begun FROM {runs} ORDER BY project, begun, run_id"
        )

    return await reader.kept("runs_by_project", select)


async def last_runs(reader: Reader) -> str:
    """The last run of each project, as a relation."""

    async def select() -> str:
        runs = await runs_by_project(reader)
        return f"SELECT project, max_by(run_id, (begun, run_id)) AS run_id FROM {runs} GROUP BY project"

    return await reader.kept("last_runs", select)


async def last_run_ids(reader: Reader) -> frozenset[str]:
    """The same, by their ids."""

    async def ids() -> frozenset[str]:
        return frozenset(row["run_id"] for row in await reader.rows(f"SELECT run_id FROM {await last_runs(reader)}"))

    return await reader.once("last_run_ids", ids)


def _newest_tasks(found: Rows, begun: dict[str, datetime | None]) -> dict[str, LastTask]:
    last: dict[str, LastTask] = {}
    for row in sorted(found, key=lambda one: (_when(begun[one["run_id"]]), one["run_id"], _ended(one), one["task_id"])):
        before = last.get(row["asset_id"])
        # Of several tasks in one run, one that went wrong speaks for the asset.
        if before is not None and before.task.run_id == row["run_id"] and before.task.state not in {"succeeded", "running"}:
            continue
        last[row["asset_id"]] = LastTask(task(row), begun[row["run_id"]])
    return last


def _when(moment: datetime | None) -> datetime:
    return moment or datetime.min.replace(tzinfo=UTC)


def _ended(row: dict[str, Any]) -> datetime:
    return _when(plain(row["ended_at"]))
