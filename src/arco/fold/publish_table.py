"""Publishes as planning asks for them: of each range of an asset's partitions the last one, with everything it was made of.

`materializations` has every partition of every publish, and grows with history; a plan would read all of it to find what lies
on top. Here a range that is published again takes the place of its last publish, so what a plan reads follows from how an asset
is cut, not from how often it was made. Only what Servo says is here: what is published and what of, nobody else knows.
"""

from arco.fold.vocabulary import Column, Group, Kind, Table, Wins
from arco.storage.keys import Head

PUBLISHES = Table(
    "publishes",
    Head.EXECUTION,
    "one row a range of partitions that Servo published in one incarnation of its table: the last publish of exactly that range",
    (
        Column("asset_id", Kind.TEXT, ""),
        Column("table_uuid", Kind.TEXT, ""),
        Column("partitions", Kind.TEXT, "the range, as JSON"),
    ),
    (
        Group(
            "publish",
            Wins.LAST,
            (
                Column("materialization_id", Kind.TEXT, ""),
                Column("run_id", Kind.TEXT, ""),
                Column("task_id", Kind.TEXT, ""),
                Column("code", Kind.TEXT, ""),
                Column("inputs", Kind.TEXT, "by parameter, the versions of what it read, as JSON"),
                Column("input_snapshots", Kind.TEXT, "which snapshot of each input it read, as JSON"),
                Column("snapshot_id", Kind.LONG, ""),
                Column("rows", Kind.LONG, ""),
                Column("bytes", Kind.LONG, ""),
                Column("checks_failed", Kind.TEXTS, "checks that failed and did not hold it back"),
                Column("checks", Kind.TEXT, "what each check found, as JSON"),
                Column("started_at", Kind.MOMENT, ""),
                Column("published_at", Kind.MOMENT, ""),
                Column("position", Kind.TEXT, ""),
            ),
        ),
    ),
    "asset_id",
)
