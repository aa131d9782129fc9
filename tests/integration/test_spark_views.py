"""Spark SQL on views."""

import pytest

from .spark_session import Spark


@pytest.fixture
def base(spark: Spark, db: str) -> str:
    spark(f"CREATE TABLE {db}.base USING iceberg AS SELECT id, id % 2 AS odd FROM range(6)")
    return db


def test_a_view_is_created_read_and_dropped(spark: Spark, base: str) -> None:
    spark(f"CREATE VIEW {base}.v (n COMMENT 'number', o) TBLPROPERTIES ('k' = 'w') AS SELECT id, odd FROM {base}.base")
    assert spark.column(f"SELECT n FROM {base}.v WHERE o = 1") == [1, 3, 5]
    assert ("k", "w") in spark(f"SHOW TBLPROPERTIES {base}.v")
    assert [row[:2] for row in spark(f"DESCRIBE {base}.v")] == [("n", "bigint"), ("o", "bigint")]
    spark(f"DROP VIEW {base}.v")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark(f"SELECT * FROM {base}.v")
    spark(f"DROP VIEW IF EXISTS {base}.v")


def test_a_view_is_replaced_and_altered(spark: Spark, base: str) -> None:
    spark(f"CREATE VIEW {base}.v AS SELECT id FROM {base}.base")
    spark(f"CREATE OR REPLACE VIEW {base}.v AS SELECT id * 10 AS ten FROM {base}.base WHERE odd = 0")
    assert spark.column(f"SELECT ten FROM {base}.v") == [0, 20, 40]
    spark(f"ALTER VIEW {base}.v SET TBLPROPERTIES ('a' = 'b')")
    assert ("a", "b") in spark(f"SHOW TBLPROPERTIES {base}.v")
    spark(f"CREATE VIEW IF NOT EXISTS {base}.v AS SELECT 1 AS other")
    assert spark.column(f"SELECT ten FROM {base}.v") == [0, 20, 40]
    assert spark.one(f"SHOW CREATE TABLE {base}.v").startswith("CREATE VIEW")


def test_views_are_listed_apart_from_tables_and_renamed(spark: Spark, base: str) -> None:
    spark(f"CREATE VIEW {base}.v AS SELECT id FROM {base}.base")
    # With tables the new name has no catalog in it, with views it must: that is Spark's way.
    spark(f"ALTER VIEW {base}.v RENAME TO {base}.w")
    assert [row[1] for row in spark(f"SHOW VIEWS IN {base}")] == ["w"]
    assert [row[1] for row in spark(f"SHOW TABLES IN {base}")] == ["base"]
    assert spark.one(f"SELECT count(*) FROM {base}.w") == 6


def test_a_view_of_a_view_follows_the_table(spark: Spark, base: str) -> None:
    spark(f"CREATE VIEW {base}.one AS SELECT id FROM {base}.base WHERE odd = 1")
    spark(f"CREATE VIEW {base}.two AS SELECT max(id) AS top FROM {base}.one")
    spark(f"INSERT INTO {base}.base VALUES (99, 1)")
    assert spark.one(f"SELECT top FROM {base}.two") == 99


def test_a_name_is_a_table_or_a_view(spark: Spark, base: str) -> None:
    with pytest.raises(Exception, match=r"(?i)already exists"):
        spark(f"CREATE VIEW {base}.base AS SELECT 1 AS a")
    spark(f"CREATE VIEW {base}.v AS SELECT 1 AS a")
    with pytest.raises(Exception, match=r"(?i)already exists"):
        spark(f"CREATE TABLE {base}.v (a INT)")
    with pytest.raises(Exception, match=r"(?i)already exists"):
        spark(f"CREATE OR REPLACE TABLE {base}.v USING iceberg AS SELECT 1 AS a")
