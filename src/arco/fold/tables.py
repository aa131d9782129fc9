"""The tables of operational state, declared once: the fold on Spark, the model in memory and fresh reads all follow these.

These things are decided here and nowhere else.
  - What "current" means for a partition: the greatest publication, by the sequence number of its commit in its table, then the
    time it was published, then its id. Not the position of its event: an event that is delivered twice has two positions, and
    the later one may lie over a newer publish. What Servo says of its runs, tasks and publishes stands above what others say of
    them, whatever they claim (`whose_word.py`). A table made again has rows of its own; which counts says the asset's table.
  - What is never counted: executions, versions, checks. Readers count distinct rows (hazard 7).
  - Where a row lies: all rows of one asset, one edge or one table share a bucket, so a page about it reads few files.
Partitions and lineage of ranges: a publish of a range has one row per partition, an execution has one row with ranges.
"""

from collections.abc import Callable

from arco.fold.dataset_table import DATASETS
from arco.fold.file_table import FILES
from arco.fold.publish_table import PUBLISHES
from arco.fold.search_tables import POSTINGS, TRIGRAMS
from arco.fold.vocabulary import Column, Group, Kind, Table, Wins
from arco.storage.keys import Domain, Head


def _columns_of(kind: Kind) -> Callable[..., Column]:
    def column(name: str, about: str = "", *, later: bool = False) -> Column:
        return Column(name, kind, about, later)

    return column


_text, _long, _real = _columns_of(Kind.TEXT), _columns_of(Kind.LONG), _columns_of(Kind.REAL)
_flag, _moment, _texts = _columns_of(Kind.FLAG), _columns_of(Kind.MOMENT), _columns_of(Kind.TEXTS)

_NAMED_THEN = _text("asset", "the name of the asset at the time")
_WHO_MADE_IT = (_text("materialization_id"), _text("run_id"), _text("task_id"), _NAMED_THEN)
_SIZE = (_long("rows"), _long("bytes"), _long("files"))
_WHO_AND_WHY = (_text("who"), _text("why"))
_IN_TASK = (_text("asset"), _text("run_id"), _text("task_id"))
_DEPLOYMENT = (_text("project"), _text("deployment"), _text("code_version"))
_COMMIT = (_long("commit_number"), _text("metadata_location"), _long("snapshot_id"))
_SPAN = (_moment("started_at"), _moment("ended_at"))
_PUBLISHER = _text(
    "told_by", "who says that it was published: arco/servo, or the source of another system's events", later=True
)

RUNS = Table(
    "runs",
    Head.EXECUTION,
    "one row a run",
    (_text("run_id"),),
    (
        Group(
            "created",
            Wins.FIRST,
            (
                *_DEPLOYMENT,
                _text("trigger", "what started it: manual, scheduled, freshness, source, event, backfill"),
                _text("triggered_by"),
                _long("tasks_planned"),
                _moment("created_at"),
                _text("job", "what another system calls it", later=True),
            ),
        ),
        Group(
            "planned",
            Wins.FIRST,
            (_text("plan_fingerprint"), _text("planning_snapshot"), _texts("assets", "what it was asked for")),
        ),
        Group(
            "state",
            Wins.LAST,
            (
                _text("state", "running, succeeded, failed, cancelled"),
                _text("task_states", "how many tasks ended in which state, as JSON"),
                *_SPAN,
                _text("message", "why it ended so, where somebody said it", later=True),
                _text("told_by", "who tells of it: arco/servo, or the source of another system's events", later=True),
            ),
        ),
    ),
    "run_id",
)

TASKS = Table(
    "tasks",
    Head.EXECUTION,
    "one row a task of a run",
    (_text("run_id"), _text("task_id")),
    (
        Group(
            "about",
            Wins.FIRST,
            (_text("asset"), _text("asset_id"), _text("partitions", "the range it covers, as JSON")),
        ),
        Group("begun", Wins.LAST, (_text("worker", "who began the newest attempt"),)),
        Group(
            "state",
            Wins.LAST,
            (
                _text("state", "running, or how it ended"),
                _long("attempt"),
                *_SPAN,
                _text("failure_class"),
                _text("message"),
            ),
        ),
    ),
    "run_id",
)

MATERIALIZATIONS = Table(
    "materializations",
    Head.EXECUTION,
    "one row a published partition of a publish",
    (_text("asset_id"), _text("partition_id"), _text("materialization_id")),
    (
        Group(
            "published",
            Wins.FIRST,
            (
                _text("partition_key", "in its one spelling, such as date=d:2025-01-15"),
                _text("asset", "the name of the asset at the time"),
                _text("run_id"),
                _text("task_id"),
                _long("attempt"),
                _text("table_uuid"),
                _long("snapshot_id"),
                _long("sequence_number", "of the commit in its table"),
                _long("schema_id"),
                _text("mode"),
                *_SIZE,
                _text("code"),
                _text("code_version"),
                _text("plan_fingerprint"),
                _texts("checks_failed", "checks that failed and did not hold it back"),
                _text("quality", "passed, warned or unknown"),
                _text("input_snapshots", "which snapshot of each input it read, as JSON"),
                _moment("started_at"),
                _moment("published_at"),
                _text("position"),
                _PUBLISHER,
            ),
        ),
    ),
    "asset_id",
)

PARTITIONS = Table(
    "partitions",
    Head.EXECUTION,
    "one row a partition of an asset in one incarnation of its table: what is current there",
    (_text("asset_id"), _text("partition_id"), _text("table_uuid")),
    (
        Group(
            "current",
            Wins.LAST,
            (
                _text("partition_key"),
                *_WHO_MADE_IT,
                _long("snapshot_id"),
                _long("sequence_number"),
                _long("schema_id"),
                *_SIZE,
                _text("code_version"),
                _text("quality"),
                _moment("published_at"),
                _PUBLISHER,
            ),
        ),
        Group("begun", Wins.FIRST, (_moment("first_published_at"),)),
    ),
    "asset_id",
)

HELD_OUTPUTS = Table(
    "held_outputs",
    Head.EXECUTION,
    "one row an output that a gate held back",
    (_text("asset_id"), _text("materialization_id")),
    (
        Group(
            "held",
            Wins.FIRST,
            (
                *_IN_TASK,
                _text("partitions", "as JSON"),
                _text("action"),
                _texts("reasons"),
                _text("branch", "where it is kept"),
                _long("snapshot_id"),
                _moment("held_at"),
                _text("told_by", "who held it back: arco/servo, or the source of another system's events", later=True),
            ),
        ),
    ),
    "asset_id",
)

SETTLED_OUTPUTS = Table(
    "settled_outputs",
    Head.EXECUTION,
    "one row a decision about something that a gate held back",
    (_text("asset_id"), _text("materialization_id"), _text("what", "output, or the rows set aside from it")),
    (
        Group(
            "settled",
            Wins.FIRST,
            (
                _text("asset"),
                _text("verdict", "released or discarded"),
                *_WHO_AND_WHY,
                _long("snapshot_id"),
                _moment("settled_at"),
            ),
        ),
    ),
    "asset_id",
)

QUALITY_RESULTS = Table(
    "quality_results",
    Head.QUALITY,
    "one row a check of an output",
    (
        _text("asset_id"),
        _text("check_id"),
        _text("materialization_id"),
        _text("partition_id", "empty where the check speaks of more than one partition"),
    ),
    (
        Group(
            "result",
            Wins.FIRST,
            (
                *_IN_TASK,
                _text("partitions", "what it speaks of, as JSON"),
                _text("check_name"),
                _text("check_type"),
                _flag("passed"),
                _text("severity"),
                _text("expected"),
                _text("actual"),
                _long("failed_rows"),
                _text("message"),
                _text("action", "what the gate asked for"),
                _moment("checked_at"),
                _text("position"),
            ),
        ),
    ),
    "asset_id",
)

QUARANTINES = Table(
    "quarantines",
    Head.QUALITY,
    "one row for partitions that people hold back, or let go again, by hand, or for one version of them",
    (
        _text("asset_id"),
        _text("partitions", "as JSON"),
        _text("materialization_id", "the version that is meant; empty: all of them", later=True),
    ),
    (
        Group(
            "said",
            Wins.LAST,
            (
                _text("asset"),
                _flag("quarantined", "false once they were released"),
                *_WHO_AND_WHY,
                _moment("said_at"),
            ),
        ),
    ),
    "asset_id",
    edition=2,
)

LINEAGE_EDGES = Table(
    "lineage_edges",
    Head.LINEAGE,
    "one row a dependency between two assets, tables or places outside",
    (_text("edge_id"),),
    (
        Group(
            "about",
            Wins.FIRST,
            (
                _text("source_id", "an asset id, a table's uuid, or the name of a place outside"),
                _text("source", "its name"),
                _text("source_kind", "asset, table, files, external"),
                _text("target_id"),
                _text("target"),
                _text("edge_kind", "how it was read: whole, changes, files, external, declared"),
                _text("recorded_by", "servo, openlineage or a person"),
            ),
        ),
        Group("first", Wins.FIRST, (_text("first_run_id"), _moment("first_seen_at"))),
        Group("last", Wins.LAST, (_text("last_run_id"), _moment("last_seen_at"))),
        Group(
            "standing",
            Wins.LAST,
            (_flag("removed", "people took it back; not what has `seen_by`"), _text("owner"), _text("description")),
        ),
        Group("seen", Wins.FIRST, (_text("seen_by", "whose word it is, if it is not that of people alone", later=True),)),
        Group(
            "mapped",
            Wins.LAST,
            (
                _real("column_coverage", "the share of the target's columns that are mapped", later=True),
                _texts("unmapped_columns", later=True),
            ),
        ),
    ),
    "edge_id",
)

LINEAGE_EXECUTIONS = Table(
    "lineage_executions",
    Head.LINEAGE,
    "one row an edge that a task went along",
    (_text("target_id"), _text("edge_id"), _text("run_id"), _text("task_id")),
    (
        Group(
            "went",
            Wins.FIRST,
            (
                _text("source_id"),
                _text("materialization_id", "what was made"),
                _long("source_snapshot_id", "what was read"),
                _text("source_partitions", "as JSON"),
                _text("target_partitions", "as JSON"),
                _moment("at"),
                _text("position"),
            ),
        ),
    ),
    "target_id",
)

LINEAGE_COLUMNS = Table(
    "lineage_columns",
    Head.LINEAGE,
    "one row a column that a column is made of",
    (_text("edge_id"), _text("target_column"), _text("source_column")),
    (
        Group(
            "mapping",
            Wins.LAST,
            (_text("transform"), _text("confidence"), _text("reason"), _text("transform_fingerprint"), _moment("seen_at")),
        ),
    ),
    "edge_id",
)

ASSETS = Table(
    "assets",
    Head.ASSETS,
    "one row an asset, as its project was last deployed",
    (_text("asset_id"),),
    (
        Group("first", Wins.FIRST, (_moment("first_deployed_at"),)),
        Group(
            "deployed",
            Wins.LAST,
            (
                _text("asset", "its name"),
                _text("namespace"),
                _text("kind"),
                *_DEPLOYMENT,
                _text("fingerprint"),
                _text("description"),
                *map(_texts, ("owners", "tags", "former_names", "inputs", "checks")),
                _text("partitioning", "its dimensions, as JSON"),
                _long("fresh_within_s"),
                _text("definition", "the whole of it, as JSON"),
                _moment("deployed_at"),
                _text("deployed_by"),
            ),
        ),
        Group("standing", Wins.LAST, (_flag("retired", "the project no longer has it"),)),
    ),
    "asset_id",
)

DECLARED_SCHEMAS = Table(
    "declared_schemas",
    Head.ASSETS,
    "one row a column of a schema that a project declared",
    (_text("asset_id"), _text("schema_hash"), _text("column_id")),
    (
        Group(
            "declared",
            Wins.FIRST,
            (
                _text("name"),
                _text("type"),
                _flag("required"),
                _text("description"),
                _long("ordinal"),
                _text("verdict"),
                _moment("declared_at"),
            ),
        ),
        Group("counted", Wins.LAST, (_moment("counted_at", "when a deployment last went over to it"),)),
    ),
    "asset_id",
)

CATALOG_TABLES = Table(
    "tables",
    Head.ASSETS,
    "one row a table or view that has or had a name in the catalog, whoever made it",
    (_text("table_uuid"),),
    (
        Group("created", Wins.FIRST, (_moment("created_at"), _text("created_by"))),
        Group(
            "placed",
            Wins.LAST,
            (
                _text("asset_id", "tier 1's: that of the asset if a project made it"),
                _text("kind", "table or view"),
                _text("format"),
                _text("location"),
            ),
        ),
        Group(
            "named",
            Wins.LAST,
            (_text("table", "its full name; of a dropped one the last"), _text("namespace"), _moment("named_at")),
        ),
        Group("renamed", Wins.LAST, (_moment("renamed_at"), _text("renamed_by"))),
        Group(
            "standing",
            Wins.LAST,
            (_flag("dropped"), _moment("dropped_at"), _text("dropped_by"), _text("drop_id"), _flag("purge")),
        ),
        Group("owned", Wins.LAST, (_text("owner"),)),
        Group("described", Wins.LAST, (_text("description"),)),
        Group("tagged", Wins.LAST, (_texts("tags"),)),
        Group("classified", Wins.LAST, (_text("sensitivity"),)),
    ),
    "table_uuid",
)

ICEBERG_TABLES = Table(
    "iceberg_tables",
    Head.ICEBERG,
    "one row a table that commits were made to",
    (_text("table_uuid"),),
    (
        Group("first", Wins.FIRST, (_moment("first_commit_at"),)),
        Group(
            "newest",
            Wins.LAST,
            (
                *_COMMIT,
                _long("sequence_number"),
                _long("schema_id"),
                _text("location"),
                _long("format_version"),
                _long("total_rows"),
                _long("total_bytes"),
                _long("total_files"),
                _moment("committed_at"),
            ),
        ),
        Group("made_for", Wins.LAST, (_text("asset_id", "the asset it belongs to, if a project made it"), _text("asset"))),
        Group(
            "outside",
            Wins.LAST,
            (
                _long(
                    "external_sequence_number",
                    "of the newest change of others to what is read: a smaller one was there before it",
                ),
                _moment("external_commit_at"),
                _text("external_principal"),
            ),
        ),
    ),
    "table_uuid",
)

ICEBERG_COMMITS = Table(
    "iceberg_commits",
    Head.ICEBERG,
    "one row a commit of a table",
    (_text("table_uuid"), _text("commit_key")),
    (
        Group(
            "committed",
            Wins.FIRST,
            (
                *_COMMIT,
                _long("parent_snapshot_id"),
                _long("sequence_number"),
                _long("schema_id"),
                _text("operation"),
                _text("source", "servo, external; admin: a registration, or upkeep"),
                _text("principal"),
                _text("client"),
                _text("run_id"),
                _text("materialization_id"),
                *map(_long, ("added_rows", "deleted_rows", "added_files", "deleted_files")),
                _text("summary", "as JSON"),
                _moment("committed_at"),
                _text("transaction", "what it became visible with: all commits that say the same", later=True),
            ),
        ),
    ),
    "table_uuid",
)

SCHEMAS = Table(
    "schemas",
    Head.ICEBERG,
    "one row a schema that a table had",
    (_text("table_uuid"), _long("schema_id")),
    (Group("seen", Wins.FIRST, (_long("columns"), _text("document", "as Iceberg writes it"), _moment("first_seen_at"))),),
    "table_uuid",
)

COLUMNS = Table(
    "columns",
    Head.ICEBERG,
    "one row a column of a schema that a table had, nested ones by their path",
    (_text("table_uuid"), _long("schema_id"), _long("field_id")),
    (
        Group(
            "seen",
            Wins.FIRST,
            (_text("name"), _text("path"), _text("type"), _flag("required"), _text("doc"), _long("ordinal")),
        ),
    ),
    "table_uuid",
)

METRICS_REPORTS = Table(
    "metrics_reports",
    Head.ICEBERG,
    "one row a report that a client sent of a scan or a commit",
    (_text("table_uuid", "empty where the table had none yet"), _text("event_id")),
    (
        Group(
            "reported",
            Wins.FIRST,
            (
                _text("table"),
                _text("report_type"),
                _long("snapshot_id"),
                _text("report", "as the client sent it, as JSON"),
                _moment("reported_at"),
            ),
        ),
    ),
    "table_uuid",
)

TABLES: tuple[Table, ...] = (
    RUNS,
    TASKS,
    MATERIALIZATIONS,
    PARTITIONS,
    PUBLISHES,
    FILES,
    HELD_OUTPUTS,
    SETTLED_OUTPUTS,
    QUALITY_RESULTS,
    QUARANTINES,
    LINEAGE_EDGES,
    LINEAGE_EXECUTIONS,
    LINEAGE_COLUMNS,
    DATASETS,
    ASSETS,
    DECLARED_SCHEMAS,
    CATALOG_TABLES,
    ICEBERG_TABLES,
    ICEBERG_COMMITS,
    SCHEMAS,
    COLUMNS,
    METRICS_REPORTS,
    POSTINGS,
    TRIGRAMS,
)

FOLDED_FROM: dict[Head, tuple[Domain, ...]] = {
    Head.EXECUTION: (Domain.EXECUTION,),
    Head.QUALITY: (Domain.QUALITY,),
    Head.LINEAGE: (Domain.LINEAGE,),
    Head.ASSETS: (Domain.CATALOG,),
    Head.ICEBERG: (Domain.ICEBERG,),
    Head.SEARCH: (Domain.CATALOG, Domain.ICEBERG),
}
"""Which domains of the ledger a head consumes. `audit` is kept and not folded: its chain is read as it is."""


def tables_of(head: Head) -> tuple[Table, ...]:
    return tuple(table for table in TABLES if table.head is head)
