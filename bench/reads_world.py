"""A folded world for the benchmark of reads, written as Parquet by DuckDB: seeded, in bounded memory, kept between runs.

Assets stand in layers, each reads one to three of the layer above, near its own place; every asset has a task a day, every task
publishes one partition and goes along its edges. On the last day a few assets failed or were held back; all below was skipped.
Files have the shape of a base: sorted by bucket and key, buckets packed into a few files, row groups small.
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from arco.fold import tables as t
from arco.fold.vocabulary import BUCKETS, Kind, Table, bucket_of
from arco.fold.words import trigrams, words_of_name, words_of_text
from arco.fold.work import StateFile
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import STATE_ROW_GROUP_ROWS_MAX
from arco.read.cut import Cut, Layers

START = "TIMESTAMP '2025-01-01'"
_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.LONG: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.FLAG: "BOOLEAN",
    Kind.MOMENT: "TIMESTAMP",
    Kind.TEXTS: "VARCHAR[]",
}


def _columns() -> str:
    return fingerprint("columns", *(f"{table.name}.{one.name}:{one.kind}" for table in t.TABLES for one in table.columns()))


@dataclass(frozen=True, slots=True)
class Scale:
    assets: int = 10_000
    layers: int = 20
    days: int = 285
    days_kept: int = 100
    files: int = 16
    seed: int = 6

    @property
    def name(self) -> str:
        """Where a world is kept: one that was made for other columns is not taken for this one."""
        return f"{self.assets}-{self.layers}-{self.days}-{self.days_kept}-{self.files}-{self.seed}-{_columns()[:12]}"


def now_ms(scale: Scale) -> int:
    """At noon after the last day: what was published that night is half a day old, and the rest is late."""
    return 1_735_689_600_000 + scale.days * 86_400_000 + 43_200_000


SMALL = Scale(assets=400, days=20, days_kept=10, files=4)
THINGS = ("orders", "customers", "payments", "shipments", "sessions", "invoices", "refunds", "products", "prices", "stock")
SHAPES = ("raw", "clean", "daily", "joined", "summary", "report", "features", "snapshot", "history", "delta")


def world(scale: Scale, folder: Path) -> Cut:
    """The cut of a world in a folder, made there if it is not there yet."""
    place = folder / scale.name
    listing = place / "files.json"
    if not listing.exists():
        _make(scale, place)
    files = msgspec.json.decode(listing.read_bytes(), type=list[StateFile])
    held: dict[str, list[StateFile]] = {}
    for file in files:
        held.setdefault(file.table, []).append(file)
    return Cut(f"bench-{scale.name}", 0, {name: Layers(tuple(of)) for name, of in held.items()})


def _make(scale: Scale, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    session = duckdb.connect(":memory:")
    session.execute("SET memory_limit='2GB'; SET threads=2; SET preserve_insertion_order=false")
    session.execute(f"SET temp_directory='{place}/spill'")
    _dimensions(session, scale)
    files: list[StateFile] = []
    for table, values, source in _tables(scale):
        files += _written(session, scale, place, table, values, source)
        print(f"  {table.name}: {sum(file.rows for file in files if file.table == table.name):,} rows", flush=True)
    (place / "files.json").write_bytes(msgspec.json.encode(files))


def _dimensions(session: Any, scale: Scale) -> None:
    rng = random.Random(scale.seed)
    width = scale.assets // scale.layers
    assets, edges, words = [], [], []
    for number in range(scale.assets):
        layer, at = divmod(number, width)
        namespace = f"team{at * max(1, scale.assets // 100) // width:02d}"
        name = f"{namespace}.{rng.choice(THINGS)}_{rng.choice(SHAPES)}_{number}"
        one = {
            "number": number,
            "asset_id": _ulid(rng, number),
            "asset": name,
            "namespace": namespace,
            "project": f"project{at * 40 // width:02d}",
            "kind": "source" if layer == 0 else "sql",
            "owner": f"owner{rng.randrange(50)}@example.com",
            "tags": rng.sample(["daily", "finance", "pii", "core", "beta", "ml"], 2),
            "table_uuid": f"{rng.getrandbits(128):032x}",
            "inputs": [],
            "fate": "failed" if number % 397 == 7 else "blocked" if number % 797 == 13 else "succeeded",
        }
        one["bucket"] = bucket_of(one["asset_id"])
        one["table_bucket"] = bucket_of(one["table_uuid"])
        if layer:
            near = {(layer - 1) * width + min(width - 1, max(0, at + rng.randint(-4, 4))) for _ in range(rng.randint(1, 3))}
            one["inputs"] = [assets[other]["asset"] for other in sorted(near)]
            if any(assets[other]["fate"] != "succeeded" for other in near):
                one["fate"] = "skipped"
            for other in sorted(near):
                edge = f"edge_{rng.getrandbits(64):016x}"
                edges.append(
                    {
                        "edge_id": edge,
                        "bucket": bucket_of(edge),
                        "target_bucket": one["bucket"],
                        "target_number": number,
                        "target_id": one["asset_id"],
                        "target": name,
                        "source_id": assets[other]["asset_id"],
                        "source": assets[other]["asset"],
                    }
                )
        assets.append(one)
        words += _words(one)
    runs = []
    for project in range(40):
        for day in range(scale.days):
            run_id = f"01K{day:05d}{project:03d}{rng.getrandbits(60):015X}"
            runs.append({"run_id": run_id, "bucket": bucket_of(run_id), "project": f"project{project:02d}", "day": day})
    grams = {(row["namespace"], gram, row["word"]) for row in words for gram in trigrams(row["word"])}
    tables = {
        "a": assets,
        "e": edges,
        "r": runs,
        "w": words,
        "g": [
            {"bucket": bucket_of(namespace), "namespace": namespace, "trigram": gram, "word": word, "length": len(word)}
            for namespace, gram, word in sorted(grams)
        ],
    }
    for name, rows in tables.items():
        session.register("given", pa.Table.from_pylist(rows))
        session.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        session.unregister("given")


def _ulid(rng: random.Random, number: int) -> str:
    return f"01J{number:07d}{rng.getrandbits(64):016X}"


def _words(asset: dict[str, Any]) -> Iterable[dict[str, Any]]:
    columns = ("order_id", "customer_id", "amount", "currency", "created_at", "updated_at")
    fields = {
        "name": (words_of_name(asset["asset"]), 8.0),
        "tag": ([word for tag in asset["tags"] for word in words_of_name(tag)], 4.0),
        "owner": (words_of_name(asset["owner"]), 2.0),
        "column": ([word for column in columns for word in words_of_name(column)], 2.0),
        "description": (words_of_text(f"What {asset['asset']} holds for everybody who reports"), 1.0),
    }
    for field, (words, weight) in fields.items():
        for word in dict.fromkeys(words):
            yield {
                "bucket": bucket_of(asset["namespace"]),
                "namespace": asset["namespace"],
                "word": word,
                "subject_id": asset["asset_id"],
                "field": field,
                "subject": asset["asset"],
                "weight": weight,
            }


def _hex(length: int, *about: str) -> str:
    return f"substr(md5({' || chr(47) || '.join(about)}), 1, {length})"


_MATERIALIZATION = f"('01M' || lpad(d::VARCHAR, 5, '0') || upper({_hex(18, 'a.asset_id', 'd::VARCHAR')}))"
_TASK = f"('task_' || {_hex(16, 'a.asset_id', 'd::VARCHAR')})"
_DAY = f"strftime({START} + to_days(d::INT), '%Y-%m-%d')"
_PART = f"('part_' || {_hex(16, 'a.asset_id', _DAY)})"
_NEXT = f"strftime({START} + to_days(d::INT + 1), '%Y-%m-%d')"
_RANGE = f"('[{{\"date\":[\"' || {_DAY} || '\",\"' || {_NEXT} || '\"]}}]')"
_AT = f"({START} + to_days(d::INT + 1) + to_minutes((a.number % 600)::INT))"
_ORDER = "printf('%020d', a.number * 1000 + d)"


def _fate(last: int, *fates: str) -> str:
    """Whether a task ended in one of these ways. Only on the last day did anything go wrong."""
    listed = ", ".join(f"'{fate}'" for fate in fates)
    return f"(d = {last} AND a.fate IN ({listed}))"


def _tables(scale: Scale) -> Iterable[tuple[Table, dict[str, str], str]]:
    """Each table: its columns as SQL, and where they come from. `low` and `high` bound the buckets of a file."""
    last = scale.days - 1
    days = f"a, range({scale.days}) AS days(d)"
    kept = f"a, range({scale.days - scale.days_kept}, {scale.days}) AS days(d)"
    went = f"(d < {last} OR a.fate = 'succeeded')"
    published = {
        "bucket": "a.bucket", "asset_id": "a.asset_id", "partition_id": _PART, "materialization_id": _MATERIALIZATION,
        "partition_key": f"'date=d:' || {_DAY}", "asset": "a.asset", "run_id": "r.run_id", "task_id": _TASK,
        "table_uuid": "a.table_uuid", "snapshot_id": "(a.number * 100000 + d) * 7919", "sequence_number": "d + 1",
        "schema_id": "0", "rows": "1000 + (a.number * 31 + d) % 500", "bytes": "90000 + (a.number * 17 + d) % 9000", "files": "1",
        "code_version": "'code_1'", "quality": "'passed'", "published_at": _AT,
    }  # fmt: skip
    of_run = " JOIN r ON r.project = a.project AND r.day = d"
    yield t.ASSETS, {
        "bucket": "a.bucket", "asset_id": "a.asset_id", "first_deployed_at": START, "first_order": "'1'", "asset": "a.asset",
        "namespace": "a.namespace", "kind": "a.kind", "project": "a.project", "deployment": "'01J'", "code_version": "'code_1'",
        "fingerprint": _hex(32, "a.asset_id"), "retired": "false", "description": "'What ' || a.asset || ' holds'",
        "owners": "[a.owner]", "tags": "a.tags", "former_names": "[]::VARCHAR[]", "inputs": "a.inputs",
        "checks": "['not_null(order_id)', 'unique(order_id)']",
        "partitioning": "'[{\"end\":null,\"kind\":\"daily\",\"name\":\"date\",\"start\":\"' || "
         f"strftime({START} + to_days({scale.days - scale.days_kept}), '%Y-%m-%d') || '\"}}]'",
        "fresh_within_s": "CASE WHEN a.number % 2 = 0 THEN 93600 END",
        "definition": "'{\"where\":\"assets.py\",\"compatibility\":\"backward\",\"text\":\"' || repeat('x', 200) || '\"}'",
        "deployed_at": START, "deployed_by": "'ann'", "deployed_order": "'1'",
    }, "a WHERE a.bucket BETWEEN $low AND $high ORDER BY a.bucket, a.asset_id"  # fmt: skip
    yield (
        t.PARTITIONS,
        {**published, "current_order": _ORDER, "first_published_at": _AT, "begun_order": _ORDER},
        (f"{kept}{of_run} WHERE {went} AND a.bucket BETWEEN $low AND $high ORDER BY a.bucket, a.asset_id, partition_id"),
    )
    yield t.MATERIALIZATIONS, {
        **published, "attempt": "1", "mode": "'replace'", "code": _hex(32, "a.asset_id"),
        "plan_fingerprint": _hex(32, "r.run_id"),
        "checks_failed": "[]::VARCHAR[]", "input_snapshots": "'{}'",
        "started_at": _AT, "position": _ORDER, "published_order": _ORDER,
    }, f"{days}{of_run} WHERE {went} AND a.bucket BETWEEN $low AND $high ORDER BY a.bucket, a.asset_id, partition_id"  # fmt: skip
    yield t.HELD_OUTPUTS, {
        "bucket": "a.bucket", "asset_id": "a.asset_id", "materialization_id": _MATERIALIZATION, "asset": "a.asset",
        "run_id": "r.run_id", "task_id": _TASK, "partitions": _RANGE, "action": "'block_downstream'",
        "reasons": "['unique(order_id)']", "branch": f"'held-' || {_MATERIALIZATION}", "snapshot_id": "d", "held_at": _AT,
        "held_order": _ORDER,
    }, (
        f"{days}{of_run} WHERE {_fate(last, 'blocked')} AND a.bucket BETWEEN $low AND $high ORDER BY a.bucket, a.asset_id"
    )  # fmt: skip
    yield t.QUALITY_RESULTS, {
        "bucket": "a.bucket", "asset_id": "a.asset_id", "check_id": _hex(32, "a.asset_id", "k"),
        "materialization_id": _MATERIALIZATION, "partition_id": "''", "asset": "a.asset", "run_id": "r.run_id",
        "task_id": _TASK, "partitions": _RANGE, "check_name": "k", "check_type": "split_part(k, '(', 1)",
        "passed": f"NOT ({_fate(last, 'blocked')} AND k LIKE 'unique%')", "severity": "'error'", "failed_rows": "0",
        "action": "'continue'", "checked_at": _AT, "position": _ORDER, "result_order": _ORDER,
    }, (
        f"{kept}{of_run}, (VALUES ('not_null(order_id)'), ('unique(order_id)')) AS checks(k) "
        f"WHERE NOT {_fate(last, 'failed', 'skipped')} AND d > {last - 30} AND a.bucket BETWEEN $low AND $high "
        "ORDER BY a.bucket, a.asset_id, check_id, materialization_id"
    )  # fmt: skip
    yield t.RUNS, {
        "bucket": "r.bucket", "run_id": "r.run_id", "project": "r.project", "code_version": "'code_1'", "trigger": "'schedule'",
        "triggered_by": "'nightly'", "tasks_planned": f"{scale.assets // 40}", "created_at": f"{START} + to_days(r.day::INT + 1)",
        "created_order": "'1'", "plan_fingerprint": _hex(32, "r.run_id"), "assets": "[]::VARCHAR[]", "planned_order": "'1'",
        "state": f"CASE WHEN r.day = {last} THEN 'failed' ELSE 'succeeded' END", "task_states": "'{}'",
        "started_at": f"{START} + to_days(r.day::INT + 1)", "ended_at": f"{START} + to_days(r.day::INT + 1) + INTERVAL 1 HOUR",
        "state_order": "'1'",
    }, "r WHERE r.bucket BETWEEN $low AND $high ORDER BY r.bucket, r.run_id"  # fmt: skip
    yield t.TASKS, {
        "bucket": "r.bucket", "run_id": "r.run_id", "task_id": _TASK, "asset": "a.asset", "asset_id": "a.asset_id",
        "partitions": _RANGE, "about_order": "'1'",
        "state": f"CASE WHEN d = {last} THEN a.fate ELSE 'succeeded' END",
        "attempt": "1", "worker": "'w'", "started_at": f"{_AT} - INTERVAL 1 MINUTE", "ended_at": _AT,
        "failure_class": f"CASE WHEN {_fate(last, 'failed')} THEN 'transform' END",
        "message": f"CASE WHEN {_fate(last, 'failed')} THEN 'division by zero' END", "state_order": _ORDER,
    }, f"{days}{of_run} WHERE r.bucket BETWEEN $low AND $high ORDER BY r.bucket, r.run_id, task_id"  # fmt: skip
    yield t.LINEAGE_EDGES, {
        "bucket": "e.bucket", "edge_id": "e.edge_id", "source_id": "e.source_id", "source": "e.source", "source_kind": "'asset'",
        "target_id": "e.target_id", "target": "e.target", "edge_kind": "'whole'", "recorded_by": "'servo'", "about_order": "'1'",
        "first_run_id": "'01'", "first_seen_at": START, "first_order": "'1'", "last_run_id": "'02'", "last_seen_at": START,
        "last_order": "'1'",
    }, "e WHERE e.bucket BETWEEN $low AND $high ORDER BY e.bucket, e.edge_id"  # fmt: skip
    yield t.LINEAGE_EXECUTIONS, {
        "bucket": "a.bucket", "target_id": "a.asset_id", "edge_id": "e.edge_id", "run_id": "r.run_id", "task_id": _TASK,
        "source_id": "e.source_id", "materialization_id": _MATERIALIZATION,
        "source_snapshot_id": "(a.number * 100000 + d) * 7907",
        "source_partitions": _RANGE, "target_partitions": _RANGE, "at": _AT, "position": _ORDER, "went_order": _ORDER,
    }, (
        f"{days}{of_run} JOIN e ON e.target_number = a.number WHERE {went} AND a.bucket BETWEEN $low AND $high "
        "ORDER BY a.bucket, a.asset_id, e.edge_id, r.run_id"
    )  # fmt: skip
    yield t.LINEAGE_COLUMNS, {
        "bucket": "e.bucket", "edge_id": "e.edge_id", "target_column": "c", "source_column": "c", "transform": "'identity'",
        "confidence": "'high'", "reason": "'sql_resolved'", "seen_at": START, "mapping_order": "'1'",
    }, (
        "e, (VALUES ('amount'), ('order_id')) AS cols(c) WHERE e.bucket BETWEEN $low AND $high "
        "ORDER BY e.bucket, e.edge_id, target_column"
    )  # fmt: skip
    of_table = {"bucket": "a.table_bucket", "table_uuid": "a.table_uuid"}
    by_table = "a.table_bucket BETWEEN $low AND $high ORDER BY a.table_bucket, a.table_uuid"
    yield t.ICEBERG_TABLES, {
        **of_table, "first_commit_at": START, "first_order": "'1'", "commit_number": f"{scale.days}", "metadata_location": "'m'",
        "snapshot_id": f"(a.number * 100000 + {last}) * 7919", "sequence_number": f"{scale.days}", "schema_id": "0",
        "asset_id": "a.asset_id", "asset": "a.asset", "location": "'data/' || a.table_uuid", "format_version": "2",
        "total_rows": "100000", "total_bytes": "9000000", "total_files": "100",
        "committed_at": f"{START} + to_days({scale.days})", "newest_order": "'1'",
    }, f"a WHERE {by_table}"  # fmt: skip
    yield t.SCHEMAS, {
        **of_table, "schema_id": "0", "columns": "6", "document": "'{}'", "first_seen_at": START, "seen_order": "'1'",
    }, f"a WHERE {by_table}"  # fmt: skip
    yield t.COLUMNS, {
        **of_table, "schema_id": "0", "field_id": "f", "name": "c", "path": "c", "type": "'string'", "required": "false",
        "ordinal": "f", "seen_order": "'1'",
    }, (
        "a, (VALUES (1, 'order_id'), (2, 'customer_id'), (3, 'amount'), (4, 'currency'), (5, 'created_at'), (6, 'updated_at')) "
        f"AS cols(f, c) WHERE {by_table}, field_id"
    )  # fmt: skip
    yield t.POSTINGS, {
        "bucket": "w.bucket", "namespace": "w.namespace", "word": "w.word", "subject_id": "w.subject_id", "field": "w.field",
        "subject_kind": "'asset'", "subject": "w.subject", "weight": "w.weight", "found_order": "'1'",
    }, "w WHERE w.bucket BETWEEN $low AND $high ORDER BY w.bucket, w.namespace, w.word, w.subject_id, w.field"  # fmt: skip
    yield t.TRIGRAMS, {
        "bucket": "g.bucket", "namespace": "g.namespace", "trigram": "g.trigram", "word": "g.word", "length": "g.length",
        "found_order": "'1'",
    }, "g WHERE g.bucket BETWEEN $low AND $high ORDER BY g.bucket, g.namespace, g.trigram, g.word"  # fmt: skip


def _written(
    session: Any, scale: Scale, place: Path, table: Table, values: dict[str, str], source: str
) -> Iterable[StateFile]:
    columns = ", ".join(
        f'({values.get(column.name, "NULL")})::{_TYPES[column.kind]} AS "{column.name}"' for column in table.columns()
    )
    step = BUCKETS // scale.files
    for number in range(scale.files):
        file = place / f"{table.name}-{number:02d}.parquet"
        bounded = source.replace("$low", str(number * step)).replace("$high", str(number * step + step - 1))
        session.execute(
            f"COPY (SELECT {columns} FROM {bounded}) TO '{file}' "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {STATE_ROW_GROUP_ROWS_MAX}, PARQUET_VERSION v1)"
        )
        rows, buckets = session.execute(
            f"SELECT count(*), list(DISTINCT bucket ORDER BY bucket) FROM read_parquet('{file}')"
        ).fetchone()
        if not rows:
            file.unlink()
            continue
        yield StateFile(
            table=table.name,
            key=file.name,
            checksum=_checksum(file),
            rows=rows,
            bytes=file.stat().st_size,
            buckets=tuple(buckets),
            least=(),
            greatest=(),
        )


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
