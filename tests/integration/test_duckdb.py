"""DuckDB's iceberg extension against a running server."""

import datetime as dt
import itertools
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from .duckdb_session import Duck

_numbers = itertools.count(1)


@pytest.fixture
def db(duck: Duck) -> str:
    """A schema for one test."""
    name = f"arco.duck{next(_numbers)}"
    duck(f"CREATE SCHEMA {name}")
    return name


@pytest.fixture
def t(duck: Duck, db: str) -> str:
    duck(f"CREATE TABLE {db}.t (id BIGINT, s VARCHAR)")
    duck(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b')")
    duck(f"INSERT INTO {db}.t VALUES (3, 'c')")
    return f"{db}.t"


def test_schemas_and_tables_are_listed_created_and_dropped(duck: Duck, db: str) -> None:
    duck(f"CREATE TABLE {db}.one (a INTEGER)")
    duck(f"CREATE TABLE {db}.two (a INTEGER)")
    schema = db.removeprefix("arco.")
    listed = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'"
    assert duck.column(listed) == ["one", "two"]
    duck(f"DROP TABLE {db}.one")
    assert duck.column(listed) == ["two"]
    duck(f"DROP TABLE {db}.two")
    duck(f"DROP SCHEMA {db}")
    assert duck(f"SELECT * FROM information_schema.schemata WHERE schema_name = '{schema}'") == []


def test_rows_come_back_with_their_types(duck: Duck, db: str) -> None:
    duck(
        f"""CREATE TABLE {db}.types (b BOOLEAN, i INTEGER, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), s VARCHAR, x BLOB,
            day DATE, moment TIMESTAMP, u UUID, many INTEGER[], p STRUCT(a INTEGER, z VARCHAR))"""
    )
    duck(
        f"""INSERT INTO {db}.types VALUES (true, 1, 2, 3.5, 4.5, 123456789012345.678, 'größe', '\\x00\\xFF', DATE '2026-01-01',
            TIMESTAMP '2026-01-01 10:00:00', '00000000-0000-4000-8000-000000000001', [1, 2], {{'a': 1, 'z': 'deep'}})"""
    )
    (row,) = duck(f"SELECT * FROM {db}.types")
    assert row[:9] == (True, 1, 2, 3.5, 4.5, Decimal("123456789012345.678"), "größe", b"\x00\xff", dt.date(2026, 1, 1))
    assert row[-2:] == ([1, 2], {"a": 1, "z": "deep"})


def test_rows_are_inserted_updated_deleted_and_merged(duck: Duck, t: str) -> None:
    duck(f"UPDATE {t} SET s = 'B' WHERE id = 2")
    duck(f"DELETE FROM {t} WHERE id = 1")
    duck(
        f"""MERGE INTO {t} USING (SELECT * FROM (VALUES (3, 'C'), (4, 'd')) v(id, s)) new ON t.id = new.id
            WHEN MATCHED THEN UPDATE SET s = new.s WHEN NOT MATCHED THEN INSERT VALUES (new.id, new.s)"""
    )
    assert duck(f"SELECT * FROM {t} ORDER BY id") == [(2, "B"), (3, "C"), (4, "d")]


def test_a_table_is_created_from_a_query_in_a_folder_that_is_there(duck: Duck, db: str, lake: Path) -> None:
    # DuckDB stages the table and writes into it before the catalog does.
    duck(f"CREATE TABLE {db}.from_a_query AS SELECT i AS id, 'x' || i AS s FROM range(1000) r(i)")
    assert duck.one(f"SELECT count(*) FROM {db}.from_a_query") == 1000
    (folder,) = lake.glob("default/default/data/from_a_query-*")
    assert list((folder / "data").iterdir())
    assert list((folder / "metadata").iterdir())


def test_a_query_that_fails_leaves_no_table(duck: Duck, db: str) -> None:
    with pytest.raises(duckdb.Error, match="no such luck"):
        duck(f"CREATE TABLE {db}.never AS SELECT CASE WHEN i > 5 THEN error('no such luck') END AS a FROM range(9) r(i)")
    with pytest.raises(duckdb.CatalogException):
        duck(f"SELECT * FROM {db}.never")
    duck(f"CREATE TABLE {db}.never (a INTEGER)")


def test_a_transaction_is_one_snapshot_or_none(duck: Duck, t: str) -> None:
    before = len(duck(f"SELECT * FROM iceberg_snapshots({t})"))
    duck("BEGIN")
    duck(f"INSERT INTO {t} VALUES (8, 'gone')")
    duck("ROLLBACK")
    duck("BEGIN")
    duck(f"INSERT INTO {t} VALUES (9, 'kept')")
    duck("COMMIT")
    assert duck.column(f"SELECT id FROM {t}") == [1, 2, 3, 9]
    assert len(duck(f"SELECT * FROM iceberg_snapshots({t})")) == before + 1


def test_the_past_is_read_by_version_and_by_time(duck: Duck, t: str) -> None:
    first, second = duck(f"SELECT snapshot_id, timestamp_ms FROM iceberg_snapshots({t}) ORDER BY sequence_number")
    assert duck.column(f"SELECT id FROM {t} AT (VERSION => {first[0]})") == [1, 2]
    assert duck.column(f"SELECT id FROM {t} AT (VERSION => {second[0]})") == [1, 2, 3]
    assert duck.column(f"SELECT id FROM {t} AT (TIMESTAMP => TIMESTAMP '{first[1]}')") == [1, 2]


def test_a_schema_evolves(duck: Duck, t: str) -> None:
    duck(f"ALTER TABLE {t} ADD COLUMN n INTEGER")
    duck(f"ALTER TABLE {t} RENAME COLUMN s TO text")
    duck(f"INSERT INTO {t} VALUES (4, 'd', 7)")
    assert duck(f"SELECT id, text, n FROM {t} WHERE id > 2 ORDER BY id") == [(3, "c", None), (4, "d", 7)]
    duck(f"ALTER TABLE {t} DROP COLUMN n")
    assert duck(f"SELECT * FROM {t} WHERE id = 4") == [(4, "d")]


def test_partitions_are_written_and_read(duck: Duck, db: str) -> None:
    duck(f"CREATE TABLE {db}.p (id BIGINT, d DATE) PARTITIONED BY (d)")
    duck(f"INSERT INTO {db}.p SELECT i, DATE '2026-01-01' + (i % 3)::INTEGER FROM range(9) r(i)")
    assert duck.column(f"SELECT id FROM {db}.p WHERE d = DATE '2026-01-02'") == [1, 4, 7]


def test_two_writers_lose_nothing(duck: Duck, t: str) -> None:
    # DuckDB does not try again by itself: whoever came second is told, and nothing of theirs is there.
    with duck.connection.cursor() as other:
        other.execute("BEGIN")
        other.execute(f"INSERT INTO {t} VALUES (10, 'other')")
        duck(f"INSERT INTO {t} VALUES (11, 'duck')")
        with pytest.raises(duckdb.Error, match="409"):
            other.execute("COMMIT")
    assert duck.column(f"SELECT id FROM {t}") == [1, 2, 3, 11]
