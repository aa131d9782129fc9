"""Names as Spark uses them: namespaces, renames, drops, purges, pages, odd characters."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .arco_server import arco_server
from .spark_session import Spark

ODD = ("with space", "größe", "a.b", "a/b", "50%", "q?x#y", "UPPER", "日本", "a+b&c=d", "ns.t")


def tables(spark: Spark, namespace: str) -> list[str]:
    return sorted(row[1] for row in spark(f"SHOW TABLES IN {namespace}"))


def folder(spark: Spark, t: str) -> Path:
    """Where a table's files lie."""
    described = {row[0]: row[1] for row in spark(f"DESCRIBE TABLE EXTENDED {t}")}
    return Path("/" + described["Location"].removeprefix("file:").lstrip("/"))


def files(where: Path) -> list[Path]:
    return [path for path in where.rglob("*") if path.is_file()]


# Namespaces


def test_namespaces_have_properties_and_levels(spark: Spark, db: str) -> None:
    spark(f"CREATE NAMESPACE {db}.inner COMMENT 'inside' WITH DBPROPERTIES ('k' = 'v')")
    spark(f"CREATE NAMESPACE {db}.inner.innermost")
    spark(f"CREATE TABLE {db}.inner.innermost.t (a INT)")
    spark(f"INSERT INTO {db}.inner.innermost.t VALUES (1)")
    spark(f"ALTER NAMESPACE {db}.inner SET PROPERTIES ('x' = 'y')")
    described = {row[0]: row[1] for row in spark(f"DESCRIBE NAMESPACE EXTENDED {db}.inner")}
    assert described["Comment"] == "inside"
    assert "(k,v)" in described["Properties"]
    assert "(x,y)" in described["Properties"]
    name = db.removeprefix("arco.")
    assert spark(f"SHOW NAMESPACES IN {db}") == [(f"{name}.inner",)]
    assert spark(f"SHOW NAMESPACES IN {db}.inner") == [(f"{name}.inner.innermost",)]
    assert spark.one(f"SELECT a FROM {db}.inner.innermost.t") == 1


def test_a_namespace_is_dropped_only_if_it_is_empty(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.t (a INT)")
    with pytest.raises(Exception, match="not empty"):
        spark(f"DROP NAMESPACE {db}")
    spark(f"DROP TABLE {db}.t")
    spark(f"DROP NAMESPACE {db}")
    spark(f"DROP NAMESPACE IF EXISTS {db}")
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
        spark(f"DROP NAMESPACE {db}")


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_are_just_names(spark: Spark, db: str, odd: str) -> None:
    inner = f"{db}.`{odd}`"
    spark(f"CREATE NAMESPACE {inner}")
    spark(f"CREATE TABLE {inner}.`{odd}` USING iceberg AS SELECT 1 AS a")
    assert spark.one(f"SELECT a FROM {inner}.`{odd}`") == 1
    assert tables(spark, inner) == [odd]
    where = folder(spark, f"{inner}.`{odd}`")
    assert len(files(where)) > 0
    assert str(where).isascii()


# Rename


def test_a_table_moves_to_another_name_and_namespace(spark: Spark, db: str) -> None:
    spark(f"CREATE NAMESPACE {db}.other")
    spark(f"CREATE TABLE {db}.t USING iceberg AS SELECT 1 AS a")
    namespace = db.removeprefix("arco.")
    spark(f"ALTER TABLE {db}.t RENAME TO {namespace}.u")
    spark(f"ALTER TABLE {db}.u RENAME TO {namespace}.other.w")
    assert tables(spark, db) == []
    assert spark.one(f"SELECT a FROM {db}.other.w") == 1


def test_a_rename_with_the_catalog_in_the_new_name_is_refused(spark: Spark, db: str) -> None:
    # Spark sends the catalog's name as a namespace: the answer, and docs/clients/spark.md, say what to write instead.
    spark(f"CREATE TABLE {db}.t (a INT)")
    with pytest.raises(Exception, match=r"Namespace does not exist: .* write the new name as .*\.u, without the catalog"):
        spark(f"ALTER TABLE {db}.t RENAME TO {db}.u")
    assert tables(spark, db) == ["t"]


# Drop


def test_a_dropped_table_is_gone_and_its_name_is_free(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.t USING iceberg AS SELECT 1 AS a")
    where = folder(spark, f"{db}.t")
    spark(f"DROP TABLE {db}.t")
    assert tables(spark, db) == []
    assert files(where)
    spark(f"CREATE TABLE {db}.t (b STRING)")
    assert spark(f"SELECT * FROM {db}.t") == []
    spark(f"DROP TABLE IF EXISTS {db}.missing")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark(f"DROP TABLE {db}.missing")


def test_a_purge_is_done_by_spark_itself_unless_told(spark: Spark, db: str) -> None:
    spark(f"CREATE TABLE {db}.t USING iceberg AS SELECT 1 AS a")
    where = folder(spark, f"{db}.t")
    spark(f"DROP TABLE {db}.t PURGE")
    assert tables(spark, db) == []
    assert files(where) == []


def test_a_purge_that_is_left_to_the_catalog_deletes_nothing_at_once(spark: Spark, db: str, shared_address: str) -> None:
    name = spark.attach("purging", shared_address, rest_catalog_purge="true")
    t = f"{db.replace('arco.', f'{name}.', 1)}.t"
    spark(f"CREATE TABLE {t} USING iceberg AS SELECT 1 AS a")
    where = folder(spark, t)
    before = files(where)
    spark(f"DROP TABLE {t} PURGE")
    assert tables(spark, db) == []
    assert files(where) == before


# Pages, workspaces


def test_long_listings_come_in_pages(spark: Spark, db: str, shared_address: str) -> None:
    name = spark.attach("paged", shared_address, rest_page_size="2")
    paged = db.replace("arco.", f"{name}.", 1)
    for number in range(5):
        spark(f"CREATE TABLE {db}.t{number} (a INT)")
        spark(f"CREATE NAMESPACE {db}.n{number}")
    assert tables(spark, paged) == [f"t{number}" for number in range(5)]
    assert len(spark(f"SHOW NAMESPACES IN {paged}")) == 5


def test_a_warehouse_is_a_workspace_of_its_own(spark: Spark, db: str, shared_address: str) -> None:
    name = spark.attach("elsewhere", shared_address, warehouse="acme/sales")
    spark(f"CREATE NAMESPACE {name}.only_here")
    spark(f"CREATE TABLE {name}.only_here.t USING iceberg AS SELECT 1 AS a")
    assert spark(f"SHOW NAMESPACES IN {name}") == [("only_here",)]
    assert ("only_here",) not in spark("SHOW NAMESPACES IN arco")
    assert (db.removeprefix("arco."),) in spark("SHOW NAMESPACES IN arco")


@pytest.fixture
def odd_root(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "my lake größe").mkdir()
    with arco_server(tmp_path / "my lake größe") as address:
        yield address


def test_a_root_may_have_a_name_with_spaces(spark: Spark, odd_root: str) -> None:
    name = spark.attach("spaced", odd_root)
    spark(f"CREATE NAMESPACE {name}.db")
    spark(f"CREATE TABLE {name}.db.t USING iceberg AS SELECT 1 AS a")
    spark(f"INSERT INTO {name}.db.t VALUES (2)")
    assert spark.column(f"SELECT a FROM {name}.db.t") == [1, 2]
