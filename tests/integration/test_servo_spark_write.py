"""Outputs written by real Spark: what the files hold, what they say of themselves, and what is refused."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import _to_partition_representation
from pyiceberg.transforms import parse_transform
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from arco.fold.spark_session import Session
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import AlreadyExists, BrokenInvariant, InvalidInput
from arco.servo.execute.data_files import Written, check_ids, values_of
from arco.servo.execute.name_mapping import field_id_of
from arco.servo.execute.spark_arrow_writer import arrow_schema
from arco.servo.execute.spark_transforms import parts_of
from arco.servo.execute.spark_types import iceberg_schema, spark_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.table_state import pyiceberg_schema
from arco.servo.execute.target import Distribution, Target
from fixtures.servo.frames import MARKS, frame_of, rows
from fixtures.servo.lake import Lake

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

RANDOM = Random(7)


def staged(home: Lake, frame: DataFrame, *parts: tuple[str, str], **more: Any) -> TableMetadata:
    """A table for a frame, partitioned by transforms of its columns."""
    schema = iceberg_schema(frame.schema)
    ids = {field["name"]: field["id"] for field in schema["fields"]}
    fields = [{"name": f"p{at}", "transform": how, "source-id": ids[name]} for at, (how, name) in enumerate(parts)]
    return home.stage(f"t{home.ulids.next()}", schema, partition_spec={"fields": fields}, **more)


def written(home: Lake, frame: DataFrame, table: TableMetadata, distribution: Any = Distribution.BY_PARTITION) -> Written:
    return write(frame, Target.of(table, home.materialization(), 1, distribution), home.io)


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


# Partition transforms

TIMES = [  # on a wall clock, without a zone
    datetime.fromisoformat("1969-12-31T23:59:59.999999"),
    datetime.fromisoformat("1970-01-01"),
    datetime.fromisoformat("1900-02-28T05:00"),
    datetime.fromisoformat("9999-12-31T23:00"),
]
TIMES += [datetime.fromisoformat("1700-01-01") + timedelta(microseconds=RANDOM.randrange(10**16)) for _ in range(300)]
TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "größe", "日本語テキスト", "😀😀", "x" * 100]
TEXTS += ["".join(RANDOM.choice("aü日😀 ") for _ in range(RANDOM.randrange(9))) for _ in range(200)]
DECIMALS = [Decimal(value).scaleb(-2) for value in (0, 1, -1, 99, -100, 10**15, -(10**15))]
DECIMALS += [Decimal(RANDOM.randrange(-(10**16), 10**16)).scaleb(-2) for _ in range(200)]
LONGS = [0, 1, -1, 2**62, -(2**62), *(RANDOM.randrange(-(2**40), 2**40) for _ in range(200))]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, -1, 2**31 - 11, -(2**31) + 11, *(RANDOM.randrange(-(2**30), 2**30) for _ in range(200))]),
    "long": (pa.int64(), LONGS),
    "date": (pa.date32(), [one.date() for one in TIMES]),
    "timestamp": (pa.timestamp("us"), TIMES),
    "timestamptz": (pa.timestamp("us", "UTC"), [one.replace(tzinfo=UTC) for one in TIMES]),
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), [one.encode() for one in TEXTS]),
    "decimal(18, 2)": (pa.decimal128(18, 2), DECIMALS),
    "boolean": (pa.bool_(), [True, False]),
}
PERIODS = [(how, kind) for how in ("year", "month", "day", "hour") for kind in ("date", "timestamp", "timestamptz")]
PERIODS.remove(("hour", "date"))
BUCKETS = [("bucket[16]", kind) for kind in VALUES if kind != "boolean"]
WIDTHS = [
    (how, kind) for how in ("truncate[1]", "truncate[10]") for kind in ("int", "long", "string", "binary", "decimal(18, 2)")
]
IDENTITIES = [("identity", kind) for kind in VALUES]


@pytest.mark.parametrize(("transform", "kind"), [*PERIODS, *BUCKETS, *WIDTHS, *IDENTITIES], ids=str)
def test_a_transform_equals_the_table_formats_for_every_value(session: Session, transform: str, kind: str) -> None:
    arrow, values = VALUES[kind]
    values = [None, *values]
    frame = frame_of(session, pa.table({"x": pa.array(values, arrow)})).coalesce(1)
    schema = iceberg_schema(frame.schema)
    assert schema["fields"][0]["type"] == kind
    spec = {"spec-id": 0, "fields": [{"name": "p", "transform": transform, "source-id": 1, "field-id": 1000}]}
    (part,) = parts_of(spec, schema)
    found = [row[0] for row in frame.select(part.value).collect()]
    source = pyiceberg_schema(schema).find_type("x")
    stored = [None if one is None else _to_partition_representation(source, one) for one in values]
    expected = [parse_transform(transform).transform(source)(one) for one in stored]
    assert [bytes(one) if isinstance(one, bytearray) else one for one in found] == expected


@pytest.mark.parametrize(
    ("transform", "kind"), [("identity", "double"), ("identity", "float"), ("hour", "date"), ("bucket[4]", "boolean")]
)
def test_a_transform_without_an_equal_is_refused_with_the_reason(transform: str, kind: str) -> None:
    schema = {"fields": [{"id": 1, "name": "x", "required": False, "type": kind}]}
    spec = {"fields": [{"name": "p", "transform": transform, "source-id": 1}]}
    with pytest.raises(InvalidInput, match=f"'p' is .* of a {kind}, which cannot be written"):
        parts_of(spec, schema)


# Layout

SPEC = (("identity", "day"), ("bucket[3]", "id"), ("truncate[2]", "name"), ("hour", "at"), ("void", "id"))


def events(session: Session, count: int = 400) -> DataFrame:
    return session.spark.range(count).selectExpr(
        "id",
        "date_add(date'2025-01-01', cast(id % 3 as int)) day",
        "concat('n', id % 5) name",
        "timestamp_seconds(id * 977) at",
    )


@pytest.mark.parametrize("distribution", list(Distribution), ids=lambda one: one.value)
def test_every_file_holds_one_partition_tuple_and_all_rows_are_there(session, home, distribution) -> None:
    frame = events(session)
    table = staged(home, frame, *SPEC)
    done = written(home, frame, table, distribution)
    schema = pyiceberg_schema(table.current_schema)
    spec = table.document["partition-specs"][0]
    seen = 0
    for file in done.files:
        content = pq.ParquetFile(local(file.file_path)).read()
        seen += content.num_rows
        for row in content.to_pylist():
            assert values_of(file) == tuple(
                parse_transform(part["transform"]).transform(schema.find_type(part["source-id"]))(
                    _to_partition_representation(
                        schema.find_type(part["source-id"]), row[schema.find_column_name(part["source-id"])]
                    )
                )
                for part in spec["fields"]
            )
    assert (seen, done.rows, sum(one[1] for one in done.partitions.values())) == (400, 400, 400)
    assert rows(session.spark.read.parquet(*(one.file_path for one in done.files))) == rows(frame)


def test_rows_of_one_partition_come_together_in_one_file(session: Session, home: Lake) -> None:
    frame = events(session).repartition(7)
    table = staged(home, frame, ("identity", "day"))
    together, apart = written(home, frame, table), written(home, frame, table, Distribution.AS_IS)
    assert len(together.files) == len(together.partitions) == 3
    assert len(apart.files) > 3


ODD = [
    "",
    None,
    "a",
    "A",
    "a/b",
    "a=b",
    "a%2Fb",
    "n",
    "v",
    "__HIVE_DEFAULT_PARTITION__",
    "größe",
    " ",
    "{x}*?[y]",
    "x" * 120,
]


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_every_text_is_a_partition_of_its_own(session: Session, home: Lake, nested: bool) -> None:
    table_rows = pa.table({"name": ODD, **({"list": [[1]] * len(ODD)} if nested else {})})
    frame = frame_of(session, table_rows)
    done = written(home, frame, staged(home, frame, ("identity", "name")))
    assert sorted(done.partitions, key=repr) == sorted(((one,) for one in ODD), key=repr)
    for file in done.files:
        assert pq.ParquetFile(local(file.file_path)).read()["name"].to_pylist() == list(values_of(file))


def test_a_partition_value_that_no_folder_can_hold_is_refused(session: Session, home: Lake) -> None:
    frame = frame_of(session, pa.table({"name": ["x" * 121]}))
    with pytest.raises(PySparkException, match="longer than 120 bytes"):
        written(home, frame, staged(home, frame, ("identity", "name")))


def test_files_are_sorted_within_and_say_so(session: Session, home: Lake) -> None:
    frame = events(session).orderBy(f.rand(3))
    order = {"fields": [{"transform": "identity", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}]}
    order["fields"].append({"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"})
    table = staged(home, frame, ("identity", "day"), write_order=order)
    done = written(home, frame, table)
    for file in done.files:
        content = pq.ParquetFile(local(file.file_path)).read().to_pylist()
        assert [(row["name"], row["id"]) for row in content] == [
            (row["name"], row["id"])
            for row in sorted(sorted(content, key=lambda row: row["id"]), key=lambda row: row["name"], reverse=True)
        ]
        assert file.sort_order_id == table.default_sort_order_id == 1


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_a_file_gets_no_more_rows_than_asked(session: Session, home: Lake, nested: bool) -> None:
    session.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 10)
    frame = session.spark.range(100).coalesce(1)
    frame = frame.withColumn("list", f.array("id")) if nested else frame
    table = staged(home, frame)
    target = Target(table.current_schema, f"{table.location}/data/m/1", rows_per_file=30)
    done = write(frame, target, home.io)
    session.spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert sorted(file.record_count for file in done.files) == [10, 30, 30, 30]


# What the files hold

WHOLE = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("d7", pa.decimal128(7, 2)),
        ("d18", pa.decimal128(18, 4)),
        ("d38", pa.decimal128(38, 10)),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
    ]
)
COLLECTIONS = [
    ("list", pa.list_(pa.int64())),
    ("structs", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]))),
    ("map", pa.map_(pa.string(), pa.struct([("v", pa.float64())]))),
]
ROW = {
    "b": True,
    "i": -5,
    "l": 2**40,
    "f": 1.5,
    "d": -2.25,
    "day": date(2025, 1, 31),
    "at": datetime(2025, 1, 31, 23, 59, 59, 123456, tzinfo=UTC),
    "wall": datetime.fromisoformat("1969-12-31T23:59:59.999999"),
    "text": "größe",
    "bytes": b"\x00\xff",
    "d7": Decimal("12345.67"),
    "d18": Decimal("-99999999999999.9999"),
    "d38": Decimal("1234567890123456789012345678.0123456789"),
    "s": {"x": 7, "y": {"z": "deep"}},
}
MORE = {
    "list": [1, None, 3],
    "structs": [{"a": 1, "b": ["x", None]}, None],
    "map": [("k", {"v": 0.5}), ("n", None)],
}


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_every_type_comes_back_as_it_was_with_every_id(session: Session, home: Lake, nested: bool) -> None:
    schema = pa.schema([*WHOLE, *(COLLECTIONS if nested else [])])
    full = ROW | (MORE if nested else {})
    source = pa.Table.from_pylist([full, dict.fromkeys(full)], schema=schema)
    frame = frame_of(session, source)
    table = staged(home, frame)
    done = written(home, frame, table)
    assert done.rows == 2
    back = pa.concat_tables(pq.ParquetFile(local(file.file_path)).read() for file in done.files)
    assert sorted(map(repr, back.cast(schema).to_pylist())) == sorted(map(repr, source.to_pylist()))
    for file in done.files:
        footer = pq.read_metadata(local(file.file_path))
        top = {field.name: field_id_of(field) for field in footer.schema.to_arrow_schema()}
        assert top == {field["name"]: field["id"] for field in table.current_schema["fields"]}
        stamps = [
            footer.schema.column(at) for at in range(footer.num_columns) if footer.schema.column(at).name in {"at", "wall"}
        ]
        assert {column.physical_type for column in stamps} == {"INT64"}
        assert {footer.row_group(0).column(at).compression for at in range(footer.num_columns)} == {"ZSTD"}


def test_statistics_count_and_bound_what_is_in_a_file(session: Session, home: Lake) -> None:
    texts = ["aaaaaaaaaaaaaaaaaaaaaaaa", "zzzzzzzzzzzzzzzzzzzzzzzz", None]
    frame = frame_of(session, pa.table({"n": [3, 1, 2], "text": texts, "d": [1.5, None, 2.5]})).coalesce(1)
    (file,) = written(home, frame, staged(home, frame)).files
    assert (file.value_counts, file.null_value_counts) == ({1: 3, 2: 3, 3: 3}, {1: 0, 2: 1, 3: 1})
    assert (file.lower_bounds[1], file.upper_bounds[1]) == ((1).to_bytes(8, "little"), (3).to_bytes(8, "little"))
    assert (file.lower_bounds[2], file.upper_bounds[2]) == (b"a" * 16, b"z" * 15 + b"{")
    assert set(file.column_sizes) == {1, 2, 3}
    assert file.split_offsets == [4]
    assert file.file_size_in_bytes == local(file.file_path).stat().st_size


def test_an_output_takes_the_tables_order_types_and_missing_columns(session: Session, home: Lake) -> None:
    wide = session.spark.createDataFrame([], "id bigint, amount decimal(20,2), s struct<a: bigint, b: string>, gone string")
    table = staged(home, wide)
    narrow = session.spark.range(2).selectExpr(
        "named_struct('b', 'x', 'a', cast(id as tinyint)) s", "cast(id as smallint) id", "cast(id as decimal(9,2)) amount"
    )
    done = written(home, narrow, table)
    back = pa.concat_tables(pq.ParquetFile(local(file.file_path)).read() for file in done.files)
    assert back.column_names == ["id", "amount", "s", "gone"]
    assert back.to_pylist()[1] == {"id": 1, "amount": Decimal("1.00"), "s": {"a": 1, "b": "x"}, "gone": None}


def test_ids_of_a_table_that_was_read_do_not_travel_into_another(session: Session, home: Lake) -> None:
    frame = session.spark.range(3).selectExpr("named_struct('x', id) s", "id a")
    first = staged(home, frame)
    files = [one.file_path for one in written(home, frame, first).files]
    read = session.spark.read.parquet(*files)
    second = staged(home, session.spark.createDataFrame([], "z int, a bigint, s struct<w: int, x: bigint>"))
    done = written(home, read, second)
    assert done.rows == 3  # a wrong id would have been refused


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_an_empty_output_writes_nothing_to_publish(session: Session, home: Lake, nested: bool) -> None:
    frame = session.spark.createDataFrame([], "id bigint, l array<int>" if nested else "id bigint")
    for parts in ((), (("identity", "id"),)):
        assert written(home, frame, staged(home, frame, *parts)) == Written((), 0, 0)


# What is refused


def test_nulls_in_a_required_column_are_refused_by_name(session: Session, home: Lake) -> None:
    frame = frame_of(session, pa.table({"id": [1, None]}))
    schema = iceberg_schema(frame.schema)
    schema["fields"][0]["required"] = True
    table = home.stage("t", schema)
    with pytest.raises(InvalidInput, match="'id' is required, and the output has 1 nulls"):
        written(home, frame.coalesce(1), table)
    assert written(home, frame.where("id is not null"), table).rows == 1


def test_a_directory_that_was_written_to_is_not_written_to_again(session: Session, home: Lake) -> None:
    frame = session.spark.range(1)
    target = Target.of(staged(home, frame), home.materialization(), 1)
    write(frame, target, home.io)
    with pytest.raises(AlreadyExists, match="holds files already"):
        write(frame, target, home.io)


def test_a_session_whose_zone_was_changed_by_code_writes_nothing(session: Session, home: Lake) -> None:
    frame = session.spark.range(1)
    session.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(InvalidInput, match=r"timeZone was changed"):
            written(home, frame, staged(home, frame))
    finally:
        session.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_file_without_complete_ids_is_never_published(session: Session, home: Lake, tmp_path: Path) -> None:
    frame = session.spark.range(3).selectExpr("id", "array(id) l")
    table = staged(home, frame)
    expected = arrow_schema(table.current_schema)
    frame.to(spark_schema(table.current_schema)).write.parquet(str(tmp_path / "native"))
    (file, *_) = sorted((tmp_path / "native").glob("*.parquet"))
    with pytest.raises(BrokenInvariant, match="lacks its id"):
        check_ids("somewhere", pq.read_schema(file), expected)


# Tasks that are repeated


@pytest.mark.parametrize("nested", [False, True], ids=["native", "arrow"])
def test_a_task_that_failed_half_way_leaves_nothing_in_the_output(session: Session, home: Lake, nested: bool) -> None:
    session.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)

    @f.udf("bigint")
    def fail_once(value: int) -> int:
        if TaskContext.get().attemptNumber() == 0 and value == 390:
            raise RuntimeError("a worker had an accident")
        return value

    frame = events(session).repartition(2, "id").withColumn("id", fail_once("id"))
    frame = frame.withColumn("list", f.array("id")) if nested else frame
    done = written(home, frame, staged(home, frame, ("identity", "day")), Distribution.AS_IS)
    session.spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    content = pa.concat_tables(pq.ParquetFile(local(file.file_path)).read() for file in done.files)
    assert sorted(content["id"].to_pylist()) == list(range(400))
