"""What became of runs, tasks and checks, in numbers: for those who watch many things at once.

Only what has ended is counted, from what is folded: every server of a root says the same, and none forgets when it restarts.
Anybody may post events, so words of theirs are counted together as `other`: outcomes and types of checks that there are not, and
namespaces without a deployed asset. Whoever watches keeps a series for each word for ever.
"""

from collections.abc import Collection
from dataclasses import dataclass

from arco.fold.tables import ASSETS, QUALITY_RESULTS, RUNS, TASKS
from arco.fold.vocabulary import Table
from arco.ledger.posted_values import RUN_ENDS, TASK_ENDS
from arco.quality.kinds import KINDS
from arco.read.reader import Reader
from arco.read.views import text

RUN_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
TASK_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0)

OTHER = "other"
_TYPE = "coalesce(check_type, '-')"
_TYPES = ("-", *(one.kind for one in KINDS))

_ENDED = "state IS NOT NULL AND state NOT IN ('running', 'pending', 'ready', 'queued', 'dispatched')"
_SECONDS = "date_diff('millisecond', started_at, ended_at) / 1000.0"
_ITS_NAMESPACE = r"coalesce(nullif(regexp_replace(asset, '\.?[^.]*$', ''), ''), '-')"


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
    outcome, namespace = _one_of("state", TASK_ENDS), await _namespace(reader)
    runs = await reader.rows(
        f"SELECT {_one_of('state', RUN_ENDS)} AS state, count(*) AS n FROM {await reader.relation(RUNS)} "
        f"WHERE {_ENDED} GROUP BY 1"
    )
    tasks = await reader.rows(
        f"SELECT {namespace} AS namespace, {outcome} AS state, count(*) AS n FROM {await reader.relation(TASKS)} "
        f"WHERE {_ENDED} GROUP BY 1, 2"
    )
    checks = await reader.rows(
        f"SELECT {_one_of(_TYPE, _TYPES)} AS type, passed, count(*) AS n "
        f"FROM {await reader.relation(QUALITY_RESULTS)} WHERE passed IS NOT NULL GROUP BY 1, 2"
    )
    run_seconds = await _durations(reader, RUNS, text("all"), RUN_SECONDS)
    return Measures(
        runs={row["state"]: row["n"] for row in runs},
        run_seconds=run_seconds.get("all", Durations((0,) * len(RUN_SECONDS), 0, 0.0)),
        tasks={(row["namespace"], row["state"]): row["n"] for row in tasks},
        task_seconds=await _durations(reader, TASKS, namespace, TASK_SECONDS),
        checks={(row["type"], "passed" if row["passed"] else "failed"): row["n"] for row in checks},
    )


def _one_of(column: str, known: Collection[str]) -> str:
    return f"CASE WHEN {column} IN ({', '.join(map(text, known))}) THEN {column} ELSE {text(OTHER)} END"


async def _namespace(reader: Reader) -> str:
    """The namespace of a task's asset, if an asset was ever deployed there."""
    rows = await reader.rows(f"SELECT DISTINCT {_ITS_NAMESPACE} AS namespace FROM {await reader.relation(ASSETS)}")
    return _one_of(_ITS_NAMESPACE, sorted({"-", *(row["namespace"] for row in rows)}))


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
