"""The catalog against its limits: round trips, many tables, one hot table, disk flushes, and HTTP.

What can be counted is counted on a store in memory and does not depend on the machine; what must be timed stands beside a
baseline measured in the same run. `make bench` runs it; the tables also go to bench/results/catalog.md.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration import catalog_costs as costs  # noqa: E402 - what the tests count is what the benchmark counts
from tests.integration.catalog_costs import Case, Temperature, measure  # noqa: E402

import ddl_scale  # noqa: E402
import flushes  # noqa: E402
import hot_table  # noqa: E402
import http_rate  # noqa: E402
import many_committers  # noqa: E402

WARM, COLD, UNREADY = Temperature
TITLE = "# The catalog against its limits"
REQUESTS_OF_A_COMMIT_MAX = 9
ROUND_TRIPS = (
    "Counted before the answer, and in all with what is done after it (receipt, marker). The server knows the table (warm); "
    "or its process has just started and said at `/ready` that it is ready, and knows the names and nothing of any table "
    "(just started); or it is asked before that, and knows nothing (not ready yet; the names lie in Parquet). A first commit "
    "makes three requests more than a warm one: it reads pointer and metadata file, and makes sure of the receipt of the commit "
    "before, which another process may not have written."
)
MANY_COMMITTERS = (
    "Keyed commits of one server process to a store that takes 58 ms to read and 63 ms to write. Time is virtual: the processor "
    "takes none, so this is the protocol alone. Who waits for a table shares the next swing with all others who wait."
)
MANY_OVER_HTTP = (
    "The same through a server process over HTTP, with a store that takes as long by the clock. The client is one process."
)
FLUSHES = (
    "A local root, one request at a time, medians. A durable write is write, fsync, rename, fsync of the folder: two flushes, "
    "one after the other. What flushing costs is the time less the time of the same without flushes."
)


@dataclass(frozen=True)
class Goal:
    """How many round trips a case may take before its answer, by what the server knows; nothing where no goal is set."""

    case: Case
    warm: int | None = None
    cold: int | None = None
    has_key: bool = True
    temperatures: tuple[Temperature, ...] = tuple(Temperature)

    def of(self, temperature: Temperature) -> int | None:
        return {WARM: self.warm, COLD: self.cold, UNREADY: None}[temperature]


GOALS = (
    Goal(costs.load, warm=1, cold=3, has_key=False),
    Goal(costs.load_unchanged, warm=1, cold=3, has_key=False),
    Goal(costs.list_tables, has_key=False),
    Goal(costs.commit, warm=3, cold=5),
    Goal(costs.commit_at_once, warm=3, temperatures=(WARM,)),
    Goal(costs.create_table, warm=3),
    Goal(costs.rename_table),
    Goal(costs.drop_table),
    Goal(costs.create_namespace),
)


def round_trips() -> list[str]:
    lines = [
        "| operation | key | the server knows | round trips | goal | requests | round trips in all | requests in all | goal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        lines += [_row(goal, temperature, key=True) for temperature in goal.temperatures if goal.has_key]
        lines += [_row(goal, temperature, key=False) for temperature in goal.temperatures]
    return lines


def _row(goal: Goal, temperature: Temperature, *, key: bool) -> str:
    cost = measure(goal.case, temperature, key=key)
    is_limited = cost.what.startswith("commit") and temperature is not UNREADY
    requests_max = REQUESTS_OF_A_COMMIT_MAX if is_limited else None
    before = f"{cost.trips} | {_met(cost.trips, goal.of(temperature))} | {cost.requests}"
    in_all = f"{cost.trips_in_all} | {cost.requests_in_all} | {_met(cost.requests_in_all, requests_max)}"
    return f"| {cost.what} | {'yes' if key else ''} | {temperature} | {before} | {in_all} |"


def _met(figure: int, goal: int | None) -> str:
    if goal is None:
        return ""
    return f"≤ {goal}: {'met' if figure <= goal else '**not met**'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[100, 10_000, 100_000])
    parser.add_argument("--committers", type=int, default=32)
    parser.add_argument("--commits-each", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", type=int, default=3000)
    parser.add_argument("--commits", type=int, default=480)
    parser.add_argument("--flushes", type=int, default=200)
    asked = parser.parse_args()
    parts = [
        TITLE,
        "## Round trips",
        ROUND_TRIPS,
        "\n".join(round_trips()),
        "## Many tables",
        "\n".join(ddl_scale.report(tuple(asked.tables))),
        "## One hot table",
        "A local root, every commit with an idempotency key; each must be in the table's history exactly once.",
        "\n".join(hot_table.report(asked.committers, asked.commits_each)),
        "## Many committers, at the latencies of S3",
        MANY_COMMITTERS,
        "\n".join(many_committers.report()),
        MANY_OVER_HTTP,
        "\n".join(many_committers.over_http()),
        "## Disk flushes",
        FLUSHES,
        "\n".join(flushes.report(asked.flushes)),
        "## HTTP",
        "A local root, one server process, one client process; each committer has its own table; no keys.",
        "\n".join(http_rate.report(asked.rounds, asked.loads, asked.commits)),
    ]
    text = "\n\n".join(parts)
    print(text)
    results = ROOT / "bench" / "results" / "catalog.md"
    earlier = results.read_text() if results.exists() else ""
    # What stands before is `catalog_peers.py`'s.
    before = earlier[: earlier.index(TITLE)] if TITLE in earlier else ""
    results.write_text(f"{before}{text}\n")


if __name__ == "__main__":
    main()
