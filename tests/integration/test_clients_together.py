"""Several clients on one table: what one wrote, the others read, row for row."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from .duckdb_session import Duck
from .spark_session import Spark

ROWS = [
    (1, "a", 1.5, Decimal("10.25"), dt.date(2026, 1, 1)),
    (2, "größe", -0.5, Decimal("-3.00"), dt.date(2026, 1, 2)),
    (3, None, None, None, None),
]
COLUMNS = "id BIGINT, s STRING, v DOUBLE, n DECIMAL(12, 2), d DATE"
SCHEMA = pa.schema(
    [("id", pa.int64()), ("s", pa.string()), ("v", pa.float64()), ("n", pa.decimal128(12, 2)), ("d", pa.date32())]
)
VALUES = ", ".join(
    f"({number}, {text}, {value}, {amount}, {day})"
    for number, text, value, amount, day in (
        (1, "'a'", 1.5, 10.25, "DATE '2026-01-01'"),
        (2, "'größe'", -0.5, -3.00, "DATE '2026-01-02'"),
        (3, "NULL", "NULL", "NULL", "NULL"),
    )
)


class Three:
    """One table name, three clients. Spark reads past its cache."""

    def __init__(self, spark: Spark, iceberg: RestCatalog, duck: Duck, namespace: str) -> None:
        self.spark, self.iceberg, self.duck = spark, iceberg, duck
        self.namespace = namespace

    def name(self, table: str) -> str:
        return f"arco.{self.namespace}.{table}"

    def fresh(self, table: str) -> str:
        return f"uncached.{self.namespace}.{table}"

    def read(self, table: str, columns: str = "*") -> list[list[tuple[Any, ...]]]:
        """The rows of a table as each of them reads it."""
        found = self.iceberg.load_table((self.namespace, table)).scan().to_arrow()
        picked = found if columns == "*" else found.select([column.strip() for column in columns.split(",")])
        return [
            self.spark(f"SELECT {columns} FROM {self.fresh(table)} ORDER BY id"),
            [tuple(row.values()) for row in picked.sort_by("id").to_pylist()],
            self.duck(f"SELECT {columns} FROM {self.name(table)} ORDER BY id"),
        ]


@pytest.fixture
def three(spark: Spark, db: str, duck: Duck, shared_address: str) -> Iterator[Three]:
    spark.attach("uncached", shared_address, cache_enabled="false")
    with RestCatalog("arco", uri=shared_address) as iceberg:
        yield Three(spark, iceberg, duck, db.removeprefix("arco."))


def by_spark(three: Three) -> None:
    three.spark(f"CREATE TABLE {three.name('t')} ({COLUMNS}) PARTITIONED BY (d)")
    three.spark(f"INSERT INTO {three.name('t')} VALUES {VALUES}")


def by_pyiceberg(three: Three) -> None:
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS]
    three.iceberg.create_table((three.namespace, "t"), schema=SCHEMA).append(pa.Table.from_pylist(rows, schema=SCHEMA))


def by_duckdb(three: Three) -> None:
    three.duck(f"CREATE TABLE {three.name('t')} ({COLUMNS})")
    three.duck(f"INSERT INTO {three.name('t')} VALUES {VALUES}")


WRITERS = [by_spark, by_pyiceberg, by_duckdb]


@pytest.mark.parametrize("write", WRITERS)
def test_what_one_wrote_all_read(three: Three, write: Callable[[Three], None]) -> None:
    write(three)
    assert three.read("t") == [ROWS, ROWS, ROWS]


@pytest.mark.parametrize("write", WRITERS)
def test_a_table_is_written_by_all(three: Three, write: Callable[[Three], None]) -> None:
    write(three)
    three.spark(f"INSERT INTO {three.fresh('t')} (id, s) VALUES (4, 'spark')")
    three.iceberg.load_table((three.namespace, "t")).append(pa.Table.from_pylist([{"id": 5, "s": "py"}], schema=SCHEMA))
    three.duck(f"INSERT INTO {three.name('t')} (id, s) VALUES (6, 'duck')")
    three.spark(f"UPDATE {three.fresh('t')} SET s = 'A' WHERE id = 1")
    three.iceberg.load_table((three.namespace, "t")).delete("id = 3")
    expected = [(1, "A"), (2, "größe"), (4, "spark"), (5, "py"), (6, "duck")]
    assert three.read("t", "id, s") == [expected, expected, expected]


def test_columns_that_spark_changed_are_understood_by_all(three: Three) -> None:
    by_duckdb(three)
    for change in ("RENAME COLUMN s TO text", "DROP COLUMN v", "ADD COLUMN v STRING", "ALTER COLUMN n TYPE DECIMAL(20, 2)"):
        three.spark(f"ALTER TABLE {three.fresh('t')} {change}")
    three.spark(f"INSERT INTO {three.fresh('t')} (id, text, v) VALUES (4, 'new', 'w')")
    expected = [(1, "a", None), (2, "größe", None), (3, None, None), (4, "new", "w")]
    assert three.read("t", "id, text, v") == [expected, expected, expected]


def test_deletes_on_read_are_understood_by_all(three: Three) -> None:
    by_spark(three)
    three.spark(f"ALTER TABLE {three.fresh('t')} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    three.spark(f"INSERT INTO {three.fresh('t')} SELECT id, 'many', 0.0, 0.0, DATE '2026-02-01' FROM range(10, 20)")
    three.spark(f"DELETE FROM {three.fresh('t')} WHERE id IN (1, 15)")
    expected = [(number,) for number in (2, 3, 10, 11, 12, 13, 14, 16, 17, 18, 19)]
    assert three.read("t", "id") == [expected, expected, expected]


def test_the_past_is_the_same_for_all(three: Three) -> None:
    by_pyiceberg(three)
    table = three.iceberg.load_table((three.namespace, "t"))
    first = table.current_snapshot().snapshot_id
    three.duck(f"INSERT INTO {three.name('t')} (id) VALUES (4)")
    assert three.spark.column(f"SELECT id FROM {three.fresh('t')} VERSION AS OF {first}") == [1, 2, 3]
    assert three.duck.column(f"SELECT id FROM {three.name('t')} AT (VERSION => {first})") == [1, 2, 3]
    assert sorted(table.refresh().scan(snapshot_id=first).to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_table_in_a_nested_namespace_is_found_by_all(three: Three) -> None:
    three.spark(f"CREATE NAMESPACE arco.{three.namespace}.inner")
    three.spark(f"CREATE TABLE arco.{three.namespace}.inner.t USING iceberg AS SELECT 7L AS id")
    assert three.iceberg.load_table((three.namespace, "inner", "t")).scan().to_arrow()["id"].to_pylist() == [7]
    assert three.duck.one(f'SELECT id FROM arco."{three.namespace}.inner".t') == 7


def test_a_view_of_spark_is_seen_by_pyiceberg(three: Three) -> None:
    by_spark(three)
    three.spark(f"CREATE VIEW {three.name('v')} AS SELECT id FROM {three.name('t')}")
    assert three.iceberg.list_views(three.namespace) == [(three.namespace, "v")]
    view = three.iceberg.load_view((three.namespace, "v"))
    assert view.sql_for("spark").sql == f"SELECT id FROM {three.name('t')}"
