"""Whether the state says what the stores say: tables against pointers and names, runs against logs, assets against deployments.

What is true is given: this room reads no catalog, no log and no deployment. Every question here is about everything there is, so
this is for people who want to be sure, not for pages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from arco.fold.tables import ASSETS, CATALOG_TABLES, ICEBERG_TABLES, MATERIALIZATIONS, PARTITIONS, RUNS
from arco.fold.vocabulary import Table
from arco.read.publishers import BY_SERVO
from arco.read.reader import Reader


class Disagreement(msgspec.Struct, frozen=True):
    """Something that the state says otherwise than it is. `state` is None where it says nothing."""

    about: str
    subject: str
    truth: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class RunTruth:
    """What the log of a run says: how it ended, and what it published."""

    state: str
    published: frozenset[str]


@dataclass(frozen=True, slots=True)
class Truths:
    """Metadata files of tables by the tables' uuids, runs that ended by their ids, keys of deployed assets by theirs.

    `names` are the full names of tables and views by their uuids.
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, RunTruth] = field(default_factory=dict)
    assets: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


async def disagreements(reader: Reader, truths: Truths) -> list[Disagreement]:
    """All of them, in a fixed order."""
    found = [
        *_compared("table", truths.tables, await _texts(reader, "table_uuid", "metadata_location", ICEBERG_TABLES)),
        *_compared(
            "run", {run: one.state for run, one in truths.runs.items()}, await _texts(reader, "run_id", "state", RUNS)
        ),
        *_compared("asset", truths.assets, await _live_assets(reader), whole=True),
        *_compared("name", truths.names, await _live_names(reader), whole=True),
        *await _missing_outputs(reader, truths),
        *await _wrong_currents(reader),
    ]
    return sorted(found, key=lambda one: (one.about, one.subject))


def _compared(
    about: str, truth: Mapping[str, str], state: Mapping[str, str | None], *, whole: bool = False
) -> Iterator[Disagreement]:
    """`whole`: what only the state has is wrong as well. Dropped tables and runs of other systems are only there."""
    for subject, said in truth.items():
        if state.get(subject) != said:
            yield Disagreement(about, subject, said, state.get(subject))
    for subject in state.keys() - truth.keys() if whole else ():
        yield Disagreement(about, subject, None, state[subject])


async def _texts(reader: Reader, key: str, value: str, table: Table) -> dict[str, str | None]:
    rows = await reader.rows(f"SELECT {key} AS subject, {value} AS said FROM {await reader.relation(table)}")
    return {row["subject"]: row["said"] for row in rows}


async def _live_assets(reader: Reader) -> dict[str, str | None]:
    rows = await reader.rows(
        f"SELECT asset_id, asset FROM {await reader.relation(ASSETS)} WHERE asset IS NOT NULL AND NOT coalesce(retired, false)"
    )
    return {row["asset_id"]: row["asset"] for row in rows}


async def _live_names(reader: Reader) -> dict[str, str | None]:
    named = await reader.relation(CATALOG_TABLES)
    rows = await reader.rows(f'SELECT table_uuid, "table" AS name FROM {named} WHERE NOT coalesce(dropped, false)')
    return {row["table_uuid"]: row["name"] for row in rows}


async def _missing_outputs(reader: Reader, truths: Truths) -> Iterator[Disagreement]:
    rows = await reader.rows(f"SELECT DISTINCT materialization_id AS made FROM {await reader.relation(MATERIALIZATIONS)}")
    known = {row["made"] for row in rows}
    return (
        Disagreement("output", output, f"published by run {run}", None)
        for run, one in truths.runs.items()
        for output in one.published - known
    )


async def _wrong_currents(reader: Reader) -> Iterator[Disagreement]:
    """Partitions whose current version is not the greatest of those that were published, of Servo's if there are any."""
    key = "asset_id, partition_id, table_uuid"
    rows = await reader.rows(
        f"""WITH greatest AS (
            SELECT {key}, max({{'own': {BY_SERVO}, 'number': coalesce(sequence_number, 0), 'at': published_at,
                'id': materialization_id}}).id AS best
            FROM {await reader.relation(MATERIALIZATIONS)} GROUP BY ALL
        )
        SELECT p.asset_id, p.partition_id, g.best AS truth, p.materialization_id AS state
        FROM {await reader.relation(PARTITIONS)} p LEFT JOIN greatest g USING ({key})
        WHERE p.materialization_id IS DISTINCT FROM g.best"""
    )
    return (
        Disagreement("partition", f"{row['asset_id']}/{row['partition_id']}", row["truth"], row["state"]) for row in rows
    )
