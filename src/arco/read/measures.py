"""What became of runs, tasks and checks, in numbers: for those who watch many things at once.

Only what has ended is counted, from what is folded: every server of a root says the same, and none forgets when it restarts.
"""

from dataclasses import dataclass

from arco.fold.tables import QUALITY_RESULTS, RUNS, TASKS
from arco.fold.vocabulary import Table
from arco.read.reader import Reader
from arco.read.views import text

RUN_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
TASK_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0)

_ENDED = "state IS NOT NULL AND state NOT IN ('running', 'pending', 'ready', 'queued', 'dispatched')"
_SECONDS = "date_diff('millisecond', started_at, ended_at) / 1000.0"
_NAMESPACE = r"coalesce(nullif(regexp_replace(asset, '\.?[^.]*$', ''), ''), '-')"


@dataclass(frozen=True, slots=True)
class Durations:
    """How many took at most so long, for each bound; all of them; and all seconds together."""

    at_most: tuple[int, ...]
    count: int
    total_s: float


@dataclass(frozen=True, slots=True)
class Measures:
    """Runs by outcome; tasks by namespace of their asset and outcome; checks by type and result."""

    runs: dict[str, int]
    run_seconds: Durations
    tasks: dict[tuple[str, str], int]
    task_seconds: dict[str, Durations]
    checks: dict[tuple[str, str], int]


async def measures(reader: Reader) -> Measures:
    runs = await reader.rows(f"SELECT state, count(*) AS n FROM {await reader.relation(RUNS)} WHERE {_ENDED} GROUP BY 1")
    tasks = await reader.rows(
        f"SELECT {_NAMESPACE} AS namespace, state, count(*) AS n FROM {await reader.relation(TASKS)} "
        f"WHERE {_ENDED} GROUP BY 1, 2"
    )
    checks = await reader.rows(
        f"SELECT coalesce(check_type, '-') AS type, passed, count(*) AS n FROM {await reader.relation(QUALITY_RESULTS)} "
        "WHERE passed IS NOT NULL GROUP BY 1, 2"
    )
    run_seconds = await _durations(reader, RUNS, text("all"), RUN_SECONDS)
    return Measures(
        runs={row["state"]: row["n"] for row in runs},
        run_seconds=run_seconds.get("all", Durations((0,) * len(RUN_SECONDS), 0, 0.0)),
        tasks={(row["namespace"], row["state"]): row["n"] for row in tasks},
        task_seconds=await _durations(reader, TASKS, _NAMESPACE, TASK_SECONDS),
        checks={(row["type"], "passed" if row["passed"] else "failed"): row["n"] for row in checks},
    )


async def _durations(reader: Reader, table: Table, by: str, bounds: tuple[float, ...]) -> dict[str, Durations]:
    counted = ", ".join(f"count(*) FILTER (WHERE s <= {bound}) AS b{at}" for at, bound in enumerate(bounds))
    rows = await reader.rows(
        f"SELECT k, count(*) AS n, sum(s) AS total, {counted} FROM (SELECT {by} AS k, {_SECONDS} AS s "
        f"FROM {await reader.relation(table)} WHERE {_ENDED} AND started_at IS NOT NULL AND ended_at IS NOT NULL) GROUP BY 1"
    )
    return {
        row["k"]: Durations(tuple(row[f"b{at}"] for at in range(len(bounds))), row["n"], float(row["total"]))
        for row in rows
    }
