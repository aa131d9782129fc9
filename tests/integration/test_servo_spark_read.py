"""Tables read by real Spark without any Iceberg jar: the rows that PyIceberg, the format or common sense say, or a refusal."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import (
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    Not,
    NotEqualTo,
    NotIn,
    Or,
    StartsWith,
)
from pyiceberg.expressions.visitors import expression_evaluator
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from arco.fold.spark_session import Session
from arco.iceberg import changes
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import LAST_ADDED
from arco.kernel.errors import InvalidInput, NotFound
from arco.servo.execute.data_files import NewFile, describe
from arco.servo.execute.scans import plan_scan
from arco.servo.execute.snapshots import ReplaceAll
from arco.servo.execute.spark_arrow_writer import arrow_schema
from arco.servo.execute.spark_read import read_changes, read_table
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from fixtures.servo.deletes import commit_deletes, deletion_vector
from fixtures.servo.frames import MARKS, frame_of, rows
from fixtures.servo.lake import Lake, data_file

from .arco_server import arco_server

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, RestCatalog]]:
    """A lake that a server serves too, so that PyIceberg writes tables as its users do."""
    root = tmp_path_factory.mktemp("shared")
    with Lake(root) as lake, arco_server(root) as address:
        yield lake, RestCatalog("arco", uri=address)


def scanned(table: Table, **scan: Any) -> list[tuple[Any, ...]]:
    """What PyIceberg reads."""
    found = table.scan(**scan).to_arrow().to_pylist()
    return sorted((_plain(tuple(row.values())) for row in found), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_plain(one) for one in value.values())
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)  # as Spark hands it out in a session in UTC
    return tuple(_plain(one) for one in value) if isinstance(value, (tuple, list)) else value


# Schemas that changed


def evolved(catalog: RestCatalog) -> Table:
    """Renamed, dropped and named again, widened, nested: with rows written before and after each change."""
    schema = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "name", StringType(), required=False),
        NestedField(3, "share", FloatType(), required=False),
        NestedField(4, "amount", DecimalType(9, 2), required=False),
        NestedField(5, "flag", StringType(), required=False),
        NestedField(6, "at", StructType(NestedField(7, "x", IntegerType(), required=False)), required=False),
    )
    table = catalog.create_table(("db", "evolved"), schema)

    def append(first: int, **columns: Any) -> None:
        numbers = [first, first + 1, None]
        data: dict[str, Any] = {"id": pa.array(numbers, pa.int32() if first < 40 else pa.int64())}
        data |= {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
        table.refresh().append(pa.table(data))

    struct = pa.struct([("x", pa.int32())])
    first = {
        "name": (pa.string(), ["a", None, "c"]),
        "share": (pa.float32(), [0.5, None, 1.5]),
        "amount": (pa.decimal128(9, 2), [Decimal("1.25"), None, Decimal("-9999999.99")]),
        "flag": (pa.string(), ["old", "old", "old"]),
        "at": (struct, [{"x": 1}, {"x": None}, None]),
    }
    append(10, **first)
    append(20, **first)
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.delete_column("flag")
    with table.update_schema() as update:
        update.add_column("flag", LongType())
        update.add_column(("at", "y"), StringType())
        update.update_column("share", DoubleType())
        update.update_column("amount", DecimalType(18, 2))
    wider = pa.struct([("x", pa.int32()), ("y", pa.string())])
    append(
        30,
        title=(pa.string(), ["t", "u", None]),
        share=(pa.float64(), [1e300, None, 2.0]),
        amount=(pa.decimal128(18, 2), [Decimal("1234567890123456.78"), None, Decimal("0.01")]),
        flag=(pa.int64(), [1, 2, None]),
        at=(wider, [{"x": 3, "y": "y"}, None, {"x": None, "y": None}]),
    )
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column(("at", "x"), "longitude")
    append(2**40, title=(pa.string(), ["z", "z", "z"]))
    return table.refresh()


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_are_right_after_every_change_of_a_schema(session: Session, shared: Any, vectorized: str) -> None:
    lake, catalog = shared
    name = ("db", "evolved")
    table = catalog.load_table(name) if catalog.table_exists(name) else evolved(catalog)
    metadata = lake.load("evolved")
    session.spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert rows(read_table(session.spark, metadata, lake.io)) == scanned(table)
        for snapshot in table.snapshots():
            past = read_table(session.spark, metadata, lake.io, snapshot_id=snapshot.snapshot_id)
            assert rows(past) == scanned(table, snapshot_id=snapshot.snapshot_id)
            names = table.scan(snapshot_id=snapshot.snapshot_id).projection().fields
            assert past.columns == [field.name for field in names]
    finally:
        session.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_a_filter_means_the_column_that_the_snapshot_had(session: Session, shared: Any) -> None:
    lake, catalog = shared
    table = catalog.load_table(("db", "evolved")) if catalog.table_exists(("db", "evolved")) else evolved(catalog)
    metadata = lake.load("evolved")
    first = table.snapshots()[0].snapshot_id
    assert len(rows(read_table(session.spark, metadata, lake.io, snapshot_id=first, where=EqualTo("flag", "old")))) == 3
    assert len(rows(read_table(session.spark, metadata, lake.io, where=EqualTo("flag", 2)))) == 1
    with pytest.raises(InvalidInput, match="does not fit the table"):
        read_table(session.spark, metadata, lake.io, snapshot_id=first, where=EqualTo("title", "a"))


# Partitions and filters


def test_a_table_whose_partitioning_changed_is_read_whole_and_pruned(session: Session, shared: Any) -> None:
    lake, catalog = shared
    schema = Schema(
        NestedField(1, "id", LongType(), required=False), NestedField(2, "at", TimestamptzType(), required=False)
    )
    table = catalog.create_table(("db", "respecced"), schema)

    def append(start: int) -> None:
        moments = [datetime(2025, 1, 1 + number % 3, number, tzinfo=UTC) for number in range(6)]
        content = pa.table({"id": range(start, start + 6), "at": pa.array(moments, pa.timestamp("us", "UTC"))})
        metadata = lake.load("respecced")
        target = Target.of(metadata, lake.materialization(), 1)
        lake.publish("respecced", metadata, write(frame_of(session, content), target, lake.io))

    append(0)
    with table.refresh().update_spec() as update:
        update.add_field("at", DayTransform(), "day")
    append(10)
    with table.refresh().update_spec() as update:
        update.add_field("id", BucketTransform(2), "bucket")
        update.remove_field("day")
    append(20)
    metadata = lake.load("respecced")
    assert rows(read_table(session.spark, metadata, lake.io)) == scanned(table.refresh())
    day_2 = And(GreaterThanOrEqual("at", "2025-01-02T00:00:00+00:00"), LessThan("at", "2025-01-03T00:00:00+00:00"))
    found = rows(read_table(session.spark, metadata, lake.io, where=day_2))
    assert found == scanned(table, row_filter=day_2)
    assert len(found) == 6
    everything, pruned = plan_scan(metadata, lake.io), plan_scan(metadata, lake.io, where=day_2)
    assert len(pruned.files) < len(everything.files)


FILTERS = [
    EqualTo("n", 3),
    NotEqualTo("n", 3),
    In("n", {1, 2, 9}),
    NotIn("n", {1, 2}),
    IsNull("n"),
    Not(IsNull("s")),
    Not(EqualTo("n", 3)),
    StartsWith("s", "a"),
    Not(StartsWith("s", "a")),
    GreaterThan("d", "2025-01-02"),
    EqualTo("at", "2025-01-01T05:00:00+00:00"),
    GreaterThanOrEqual("x.y", 2),
    Or(And(EqualTo("n", 1), EqualTo("s", "a1")), EqualTo("amount", Decimal("2.50"))),
]


@pytest.fixture(scope="module")
def filtered(shared: Any) -> tuple[Lake, Table, list[dict[str, Any]]]:
    lake, catalog = shared
    schema = Schema(
        NestedField(1, "n", LongType(), required=False),
        NestedField(2, "s", StringType(), required=False),
        NestedField(3, "d", DateType(), required=False),
        NestedField(4, "at", TimestamptzType(), required=False),
        NestedField(5, "x", StructType(NestedField(6, "y", IntegerType(), required=False)), required=False),
        NestedField(7, "amount", DecimalType(9, 2), required=False),
    )
    table = catalog.create_table(("db", "filtered"), schema)
    data = [
        {
            "n": None if number == 4 else number,
            "s": None if number == 5 else f"{'ab'[number % 2]}{number}",
            "d": date(2025, 1, 1 + number),
            "at": datetime(2025, 1, 1, number, tzinfo=UTC),
            "x": {"y": None if number == 1 else number},
            "amount": Decimal(number * 125).scaleb(-2),
        }
        for number in range(8)
    ]
    table.append(pa.Table.from_pylist(data, schema=table.schema().as_arrow()))
    return lake, table, data


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_a_filter_keeps_the_rows_that_the_table_format_would(session: Session, filtered: Any, where: Any) -> None:
    lake, table, data = filtered
    matches = expression_evaluator(table.schema(), where, case_sensitive=True)
    expected = [_plain(tuple(row.values())) for row in data if matches(_record(row))]
    assert rows(read_table(session.spark, lake.load("filtered"), lake.io, where=where)) == sorted(expected, key=repr)
    assert 0 < len(expected) < 8


def _record(row: dict[str, Any]) -> Record:
    """A row as the table format holds it."""
    day, at = date_to_days(row["d"]), datetime_to_micros(row["at"])
    return Record(row["n"], row["s"], day, at, Record(row["x"]["y"]), row["amount"])


def test_only_the_columns_that_are_asked_for_come_back(session: Session, filtered: Any) -> None:
    lake, _, _ = filtered
    frame = read_table(
        session.spark, lake.load("filtered"), lake.io, columns=["s", "n"], where=GreaterThan("d", "2025-01-07")
    )
    assert (frame.columns, rows(frame)) == (["n", "s"], [(7, "b7")])
    with pytest.raises(InvalidInput, match="no column 'zzz'"):
        read_table(session.spark, lake.load("filtered"), lake.io, columns=["zzz"])


# Deleted rows

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
    ],
}
BY_DAY = {"fields": [{"name": "day", "transform": "identity", "source-id": 2}]}


def put(table: TableMetadata, name: str, content: pa.Table) -> NewFile:
    """Write a data file of a table by hand; with the table's ids if the columns fit."""
    path = Path(f"{table.location.removeprefix('file://')}/data/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path)
    return NewFile(f"{table.location}/data/{name}", path.stat().st_size, ())


def with_ids(table: TableMetadata, content: pa.Table) -> pa.Table:
    return content.cast(arrow_schema(table.current_schema))


def numbered(home: Lake, names: list[str], count: int = 5) -> TableMetadata:
    """A table of files with rows 0…4, 10…14, …"""
    table = home.create("t", SCHEMA)
    files = []
    for place, name in enumerate(names):
        first = place * 10
        content = pa.table({"id": range(first, first + count), "day": pa.array([date(2025, 1, 1)] * count)})
        files.append(put(table, name, with_ids(table, content)))
    home.publish("t", table, describe(home.io, files, table.current_schema, spec_id=0))
    return home.load("t")


def ids(frame: DataFrame) -> list[int]:
    return [row[0] for row in sorted(frame.select("id").collect())]


def position_deletes(home: Lake, table: TableMetadata, name: str, *gone: tuple[str, int]) -> None:
    content = pa.table({"file_path": [path for path, _ in gone], "pos": pa.array([row for _, row in gone], pa.int64())})
    put(table, name, content)
    commit_deletes(home, "t", [data_file(table, name, rows=len(gone), content=DataFileContent.POSITION_DELETES)])


ODD_NAMES = ["plain.parquet", "a b.parquet", "50%.parquet", "1+1.parquet", "größe{x}*.parquet", "a%20b.parquet"]


def test_deleted_rows_are_gone_however_their_files_are_spelled(session: Session, home: Lake) -> None:
    table = numbered(home, ODD_NAMES)
    here = f"{table.location}/data/"
    bare = here.removeprefix("file://")
    gone = [(f"{here}plain.parquet", 0), (f"file:{bare}a b.parquet", 1), (f"{bare}50%.parquet", 2)]
    position_deletes(home, table, "d1.parquet", *gone)
    more = [
        (f"{here}1+1.parquet", 3),
        (f"{here}größe{{x}}*.parquet", 4),
        (f"{here}a%20b.parquet", 0),
        (f"{here}plain.parquet", 4),
    ]
    position_deletes(home, table, "d2.parquet", *more)
    everything = {place * 10 + row for place in range(6) for row in range(5)}
    expected = sorted(everything - {0, 4, 11, 22, 33, 44, 50})
    frame = read_table(session.spark, home.load("t"), home.io)
    assert ids(frame) == expected
    assert ids(frame.where("id > 30")) == [one for one in expected if one > 30]
    assert ids(read_table(session.spark, home.load("t"), home.io, where=LessThan("id", 12))) == [1, 2, 3, 10]


def test_rows_written_after_a_delete_are_not_its_concern(session: Session, home: Lake) -> None:
    table = numbered(home, ["a.parquet"])
    position_deletes(
        home, table, "d.parquet", (f"{table.location}/data/a.parquet", 0), (f"{table.location}/data/b.parquet", 0)
    )
    content = with_ids(table, pa.table({"id": [100, 101], "day": pa.array([None, None], pa.date32())}))
    later = describe(home.io, [put(table, "b.parquet", content)], table.current_schema, spec_id=0)
    home.publish("t", home.load("t"), later)
    assert ids(read_table(session.spark, home.load("t"), home.io)) == [1, 2, 3, 4, 100, 101]


def test_rows_deleted_by_vectors_are_gone(session: Session, home: Lake) -> None:
    table = numbered(home, ["a.parquet", "b c.parquet", "untouched.parquet"])
    here = f"{table.location}/data/"
    vectors = deletion_vector({f"{here}a.parquet": [0, 3], f"{here}b c.parquet": [4]})
    Path(f"{here}v.puffin".removeprefix("file://")).write_bytes(vectors)
    words = {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PUFFIN}
    commit_deletes(home, "t", [data_file(table, "v.puffin", rows=3, **words)])
    expected = [1, 2, 4, 10, 11, 12, 13, 20, 21, 22, 23, 24]
    assert ids(read_table(session.spark, home.load("t"), home.io)) == expected


def test_both_kinds_of_deletes_work_together_with_pruning(session: Session, home: Lake) -> None:
    table = numbered(home, ["a.parquet", "b.parquet"])
    here = f"{table.location}/data/"
    position_deletes(home, table, "d.parquet", (f"{here}a.parquet", 1))
    Path(f"{here}v.puffin".removeprefix("file://")).write_bytes(deletion_vector({f"{here}b.parquet": [1]}))
    words = {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PUFFIN}
    commit_deletes(home, "t", [data_file(table, "v.puffin", rows=1, **words)])
    assert ids(read_table(session.spark, home.load("t"), home.io)) == [0, 2, 3, 4, 10, 12, 13, 14]
    scan = plan_scan(home.load("t"), home.io, where=GreaterThan("id", 9))
    assert [file.location.rpartition("/")[2] for file in scan.files] == ["b.parquet"]


# Files that were not written for their table


def test_partition_columns_that_only_the_folders_had_are_filled_in(session: Session, home: Lake) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "required": False, "type": "long"},
            {"id": 2, "name": "day", "required": False, "type": "date"},
            {"id": 3, "name": "land", "required": False, "type": "string"},
            {"id": 4, "name": "wall", "required": False, "type": "timestamp"},
            {"id": 5, "name": "amount", "required": False, "type": "decimal(9, 2)"},
        ],
    }
    names = {2: "day", 3: "land", 4: "wall", 5: "amount"}
    spec = {"fields": [{"name": name, "transform": "identity", "source-id": number} for number, name in names.items()]}
    table = home.create("t", schema, partition_spec=spec)
    whole = arrow_schema(table.current_schema)
    full = pa.table({"id": [1], "day": [date(2025, 1, 1)], "land": ["de"], "wall": [datetime.fromisoformat("2025-01-01T12:00")],
                     "amount": [Decimal("1.50")]}, schema=whole)  # fmt: skip
    inside = put(table, "inside.parquet", full)
    values = (20089, "de", 1735732800000000, Decimal("1.50"))
    described = describe(home.io, [NewFile(inside.location, inside.size_bytes, values)], table.current_schema, spec_id=0)
    put(table, "outside.parquet", pa.table({"id": [2, 3]}, schema=pa.schema([whole.field("id")])))
    put(table, "nowhere.parquet", pa.table({"id": [4]}, schema=pa.schema([whole.field("id")])))
    others = (
        data_file(table, "outside.parquet", 20090, "fr", 1735732800000000, Decimal("2.50"), rows=2),
        data_file(table, "nowhere.parquet", None, None, None, None, rows=1),
    )
    home.publish("t", table, (*described.files, *others))
    noon = datetime.fromisoformat("2025-01-01T12:00")
    assert rows(read_table(session.spark, home.load("t"), home.io)) == [
        (1, date(2025, 1, 1), "de", noon, Decimal("1.50")),
        (2, date(2025, 1, 2), "fr", noon, Decimal("2.50")),
        (3, date(2025, 1, 2), "fr", noon, Decimal("2.50")),
        (4, None, None, None, None),
    ]
    assert ids(read_table(session.spark, home.load("t"), home.io, where=EqualTo("land", "fr"), columns=["id"])) == [2, 3]


NESTED = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "title", "required": False, "type": "string"},
        {
            "id": 3,
            "name": "s",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 4, "name": "a", "required": False, "type": "int"},
                    {"id": 5, "name": "added", "required": False, "type": "string"},
                ],
            },
        },
        {
            "id": 6,
            "name": "l",
            "required": False,
            "type": {"type": "list", "element-id": 7, "element-required": False, "element": "int"},
        },
        {"id": 8, "name": "new", "required": False, "type": "double"},
    ],
}
MAPPING = [
    {"field-id": 1, "names": ["id"]},
    {"field-id": 2, "names": ["title", "name"]},
    {
        "field-id": 3,
        "names": ["s"],
        "fields": [{"field-id": 4, "names": ["a", "old_a"]}, {"field-id": 5, "names": ["added"]}],
    },
    {"field-id": 6, "names": ["l"], "fields": [{"field-id": 7, "names": ["element"]}]},
    {"field-id": 8, "names": ["new"]},
]
A_7 = pa.array([{"old_a": 7}], pa.struct([("old_a", pa.int32())]))
A_8 = pa.array([{"added": "x", "a": 8}], pa.struct([("added", pa.string()), ("a", pa.int32())]))
L_12 = pa.array([[1, 2]], pa.list_(pa.int32()))
WITHOUT_IDS = {
    "first.parquet": pa.table({"name": ["n1"], "id": pa.array([1], pa.int32()), "s": A_7, "l": L_12}),
    "second.parquet": pa.table({"id": [2], "title": ["t2"], "s": A_8, "unknown": [1]}),
}


def test_files_without_ids_are_read_by_the_names_that_the_table_maps(session: Session, home: Lake) -> None:
    table = home.create("t", NESTED, properties={"schema.name-mapping.default": json.dumps(MAPPING)})
    assert table.current_schema["fields"][2]["type"]["fields"][0]["id"] == 6  # numbered level by level
    fresh = {1: 1, 2: 2, 3: 3, 6: 4, 8: 5, 4: 6, 5: 7, 7: 8}
    mapping = json.loads(json.dumps(MAPPING), object_hook=lambda one: {**one, "field-id": fresh[one["field-id"]]})
    home.commit("t", changes.SetProperties({"schema.name-mapping.default": json.dumps(mapping)}))
    for name, content in WITHOUT_IDS.items():
        put(table, name, content)
    tagged = pa.table({"id": [3], "title": ["t3"], "s": [{"a": 9, "added": "y"}], "l": [[3]], "new": [0.5]})
    own = describe(home.io, [put(table, "own.parquet", with_ids(table, tagged))], table.current_schema, spec_id=0)
    others = tuple(data_file(table, name, rows=1) for name in WITHOUT_IDS)
    home.publish("t", home.load("t"), (*own.files, *others))
    assert rows(read_table(session.spark, home.load("t"), home.io)) == [
        (1, "n1", (7, None), (1, 2), None),
        (2, "t2", (8, "x"), None, None),
        (3, "t3", (9, "y"), (3,), 0.5),
    ]


def test_a_file_without_ids_and_without_a_mapping_is_an_error_and_not_null(session: Session, home: Lake) -> None:
    table = home.create("t", SCHEMA)
    put(table, "a.parquet", pa.table({"id": [1], "day": [date(2025, 1, 1)]}))
    home.publish("t", table, (data_file(table, "a.parquet", rows=1),))
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)field.?id"):
        read_table(session.spark, home.load("t"), home.io).collect()


def test_a_file_with_some_ids_is_refused_where_names_are_mapped(session: Session, home: Lake) -> None:
    table = home.create("t", SCHEMA, properties={"schema.name-mapping.default": json.dumps(MAPPING[:1])})
    half = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}), pa.field("day", pa.date32())])
    put(table, "a.parquet", pa.table({"id": [1], "day": [date(2025, 1, 1)]}, schema=half))
    home.publish("t", table, (data_file(table, "a.parquet", rows=1),))
    with pytest.raises(InvalidInput, match="ids on some of its fields only"):
        read_table(session.spark, home.load("t"), home.io)


# What is refused


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"content": DataFileContent.EQUALITY_DELETES, "equality_ids": [1]}, "deleted by equality"),
        ({"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.AVRO}, "format avro"),
        ({"content": DataFileContent.POSITION_DELETES, "key_metadata": b"k"}, "encrypted"),
    ],
    ids=["equality", "avro", "encrypted"],
)
def test_deletes_that_cannot_be_applied_are_refused_by_name(home: Lake, words: Any, reason: str) -> None:
    table = numbered(home, ["a.parquet"])
    commit_deletes(home, "t", [data_file(table, "e.bin", rows=1, **words)])
    with pytest.raises(InvalidInput, match=f"(?i){reason}") as refusal:
        plan_scan(home.load("t"), home.io)
    assert "e.bin" in refusal.value.message


@pytest.mark.parametrize("words", [{"file_format": FileFormat.ORC}, {"key_metadata": b"k"}], ids=["orc", "encrypted"])
def test_files_that_cannot_be_read_right_are_refused_by_name(home: Lake, words: Any) -> None:
    table = home.create("t", SCHEMA)
    home.publish("t", table, (data_file(table, "a.bin", **words),))
    with pytest.raises(InvalidInput, match=r"a\.bin is"):
        plan_scan(home.load("t"), home.io)


def test_a_column_with_a_default_for_old_rows_is_refused_unless_left_out(session: Session, home: Lake) -> None:
    fields = [*SCHEMA["fields"], {"id": 3, "name": "land", "required": False, "type": "string", "initial-default": "de"}]
    home.create("t", {**SCHEMA, "fields": fields}, properties={"format-version": "3"})
    with pytest.raises(InvalidInput, match="'land' has a default for rows written before"):
        read_table(session.spark, home.load("t"), home.io)
    assert rows(read_table(session.spark, home.load("t"), home.io, columns=["id", "day"])) == []


def test_a_type_that_spark_lacks_is_refused_unless_left_out(session: Session, home: Lake) -> None:
    fields = [*SCHEMA["fields"], {"id": 3, "name": "key", "required": False, "type": "uuid"}]
    home.create("t", {**SCHEMA, "fields": fields})
    with pytest.raises(InvalidInput, match="'key' has type uuid"):
        read_table(session.spark, home.load("t"), home.io)
    assert read_table(session.spark, home.load("t"), home.io, columns=["id"]).columns == ["id"]


# Refs, changes, nothing


def appended(home: Lake, first: int, **more: Any) -> int:
    table = home.load("t")
    content = with_ids(table, pa.table({"id": [first, first + 1], "day": pa.array([None, None], pa.date32())}))
    written = describe(
        home.io, [put(table, f"{first}-{home.ulids.next()}.parquet", content)], table.current_schema, spec_id=0
    )
    return home.publish("t", table, written, **more).snapshot_id


def test_branches_tags_and_snapshots_are_read_as_they_are(session: Session, home: Lake) -> None:
    home.create("t", SCHEMA)
    first = appended(home, 0)
    home.commit("t", changes.SetSnapshotRef("v1", first, "tag"))
    appended(home, 10)
    appended(home, 20, ref="wip")
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "extra", "required": False, "type": "string"}]}
    home.commit("t", changes.AddSchema(wider), changes.SetCurrentSchema(LAST_ADDED))
    table = home.load("t")
    main, tag, branch = (read_table(session.spark, table, home.io, ref=ref) for ref in ("main", "v1", "wip"))
    assert (ids(main), ids(tag), ids(branch)) == ([0, 1, 10, 11], [0, 1], [0, 1, 10, 11, 20, 21])
    assert (main.columns, tag.columns, branch.columns) == (["id", "day", "extra"], ["id", "day"], ["id", "day", "extra"])
    with pytest.raises(NotFound, match="no branch or tag 'gone'"):
        read_table(session.spark, table, home.io, ref="gone")
    with pytest.raises(NotFound, match="no snapshot 77"):
        read_table(session.spark, table, home.io, snapshot_id=77)


def test_a_table_without_rows_has_its_columns(session: Session, home: Lake) -> None:
    home.create("t", SCHEMA)
    frame = read_table(session.spark, home.load("t"), home.io, columns=["day"])
    assert (frame.columns, rows(frame)) == (["day"], [])


def test_changes_are_the_rows_appended_in_between(session: Session, home: Lake) -> None:
    home.create("t", SCHEMA)
    first, second, third = (appended(home, number) for number in (0, 10, 20))
    table = home.load("t")
    found = read_changes(session.spark, table, home.io, since=first, until=third)
    assert isinstance(found, DataFrame)
    assert ids(found) == [10, 11, 20, 21]
    found = read_changes(session.spark, table, home.io, since=first, until=third, where=LessThan("id", 11), columns=["id"])
    assert isinstance(found, DataFrame)
    assert ids(found) == [10]
    nothing = read_changes(session.spark, table, home.io, since=second, until=second)
    assert isinstance(nothing, DataFrame)
    assert rows(nothing) == []


def test_putting_the_same_rows_into_other_files_is_no_change(session: Session, home: Lake) -> None:
    home.create("t", SCHEMA)
    first = appended(home, 0)
    compacted = appended(home, 0, change=ReplaceAll(), facts={"operation": "replace"})
    last = appended(home, 10)
    assert home.load("t").snapshots[1]["summary"]["operation"] == "replace", compacted
    found = read_changes(session.spark, home.load("t"), home.io, since=first, until=last)
    assert isinstance(found, DataFrame)
    assert ids(found) == [10, 11]


def test_anything_but_appends_needs_a_full_read_and_says_why(session: Session, home: Lake) -> None:
    table = home.create("t", SCHEMA)
    first = appended(home, 0)
    other = appended(home, 5, ref="aside")
    second = appended(home, 10)
    deleted = commit_deletes(home, "t", [data_file(table, "d", rows=1, content=DataFileContent.POSITION_DELETES)])
    emptied = home.publish("t", home.load("t"), (), ReplaceAll()).snapshot_id
    metadata = home.load("t")

    def reason(since: int, until: int, table: TableMetadata = metadata) -> Any:
        return read_changes(session.spark, table, home.io, since=since, until=until)

    assert "did not only append (overwrite)" in reason(first, deleted)
    assert "did not only append (delete)" in reason(deleted, emptied)
    assert f"snapshot {other} is not in the history" in reason(other, second)
    third, fourth = appended(home, 20), appended(home, 30)
    home.commit("t", changes.RemoveSnapshots((third,)))
    assert f"snapshot {third} has expired" in reason(emptied, fourth, home.load("t"))


def test_an_append_that_brought_deletes_is_not_taken_for_one(session: Session, home: Lake) -> None:
    table = home.create("t", SCHEMA)
    first = appended(home, 0)
    deletes = data_file(table, "d", rows=1, content=DataFileContent.POSITION_DELETES)
    last = commit_deletes(home, "t", [deletes], operation="append")
    found = read_changes(session.spark, home.load("t"), home.io, since=first, until=last)
    assert isinstance(found, str)
    assert "deleted rows" in found
