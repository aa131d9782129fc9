"""What the plan that Spark analyzed says of reads: declared, undeclared, and from outside the lake."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from arco.fold.spark_session import Session
from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.servo.execute.spark_plans import named_relations, refuse_undeclared, tables_and_files_read
from arco.servo.execute.spark_read import read_table
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.target import Target
from arco.servo.sdk.definitions import AssetDefinition, AssetKind, CallSite
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

ASSET = AssetDefinition(AssetKey("shop", "orders"), AssetKind.PYTHON, CallSite("assets/orders.py", 12), "f")


@pytest.fixture
def tables(session: Session, home: Lake) -> dict[str, DataFrame]:
    """Two published tables, as inputs come."""
    frame = session.spark.range(6).selectExpr("id", "id % 2 AS k")
    for name in ("customers", "payments"):
        staged = home.stage(name, iceberg_schema(frame.schema))
        home.publish(name, staged, write(frame, Target.of(staged, home.materialization(), 1), home.io), creates=True)
    return {name: read_table(session.spark, home.load(name), home.io) for name in ("customers", "payments")}


def files(home: Lake, name: str) -> list[str]:
    return [one.data_file.file_path for one in home.entries(home.load(name))]


@pytest.fixture
def named(session: Session, tmp_path: Path) -> Iterator[str]:
    """A table of Spark's own catalog."""
    session.spark.sql(f"CREATE TABLE known_by_name USING parquet LOCATION '{tmp_path}/by-name' AS SELECT 1L AS id")
    yield "known_by_name"
    session.spark.sql("DROP TABLE known_by_name")


def refused(home: Lake, rows: DataFrame, *declared: str) -> str:
    with pytest.raises(InvalidInput) as error:
        refuse_undeclared(rows, asset=ASSET, root=home.root, declared=set(declared))
    assert error.value.hint
    return str(error.value)


def external(home: Lake, rows: DataFrame, *declared: str) -> tuple[str, ...]:
    return refuse_undeclared(rows, asset=ASSET, root=home.root, declared=set(declared))


def test_declared_inputs_may_be_read_in_any_way(session: Session, home: Lake, tables: dict[str, DataFrame]) -> None:
    tables["customers"].createOrReplaceTempView("c")
    joined = session.spark.sql(
        "SELECT p.* FROM {p} p JOIN c USING (id) WHERE id < (SELECT max(id) FROM c)", p=tables["payments"]
    )
    both = [*files(home, "customers"), *files(home, "payments")]
    assert external(home, joined, *both) == ()
    assert external(home, joined.cache(), *both) == ()
    folders = [home.load(name).location for name in ("customers", "payments")]
    assert external(home, joined, *folders) == ()
    assert external(home, session.spark.range(3)) == ()
    joined.unpersist()


READS: dict[str, Callable[[Session, str, str], DataFrame]] = {
    "a file": lambda session, file, folder: session.spark.read.parquet(file),
    "its folder": lambda session, file, folder: session.spark.read.option("recursiveFileLookup", "true").parquet(folder),
    "SQL on files": lambda session, file, folder: session.spark.sql(f"SELECT * FROM parquet.`{file}`"),
    "a view": lambda session, file, folder: view(session, file),
    "kept in memory": lambda session, file, folder: session.spark.read.parquet(file).cache().where("id > 1"),
    "a subquery": lambda session, file, folder: session.spark.sql(
        f"SELECT * FROM range(3) WHERE id < (SELECT max(id) FROM parquet.`{file}`)"
    ),
    "another format": lambda session, file, folder: session.spark.read.format("binaryFile").load(file),
    "the second API": lambda session, file, folder: second(session, file),
}


def view(session: Session, file: str) -> DataFrame:
    session.spark.read.parquet(file).createOrReplaceTempView("v")
    return session.spark.table("v").groupBy("k").count()


def second(session: Session, file: str) -> DataFrame:
    session.spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        return session.spark.read.parquet(file)
    finally:
        session.spark.conf.unset("spark.sql.sources.useV1SourceList")


@pytest.mark.parametrize("how", READS)
def test_another_tables_files_are_refused_however_they_are_read(
    session: Session, home: Lake, tables: dict[str, DataFrame], how: str
) -> None:
    file = files(home, "payments")[0]
    rows = READS[how](session, file, home.load("payments").location)
    told = refused(home, rows, *files(home, "customers"))
    assert told.startswith("assets/orders.py:12: shop.orders reads file:///")
    assert "payments" in told or home.load("payments").location in told
    session.spark.catalog.clearCache()


def test_a_folder_that_holds_the_lake_is_refused(session: Session, home: Lake, tables: dict[str, DataFrame]) -> None:
    above = str(Path(home.root.removeprefix("file://")).parent)
    rows = session.spark.read.option("recursiveFileLookup", "true").format("binaryFile").load(above)
    assert "is not among its inputs" in refused(home, rows, *files(home, "customers"))


def test_tables_by_name_are_refused(session: Session, home: Lake, named: str) -> None:
    session.spark.table(named).createOrReplaceTempView("alias_of_it")
    for rows in (
        session.spark.table(named),
        session.spark.sql(f"SELECT * FROM range(3) WHERE id IN (SELECT id FROM {named})"),
        session.spark.table("alias_of_it"),
    ):
        told = refused(home, rows)
        assert "spark_catalog.default.known_by_name by its name" in told


def test_files_from_elsewhere_are_told(session: Session, home: Lake, tables: Any, tmp_path: Path) -> None:
    folder = tmp_path / "landing zone 100%"
    folder.mkdir()
    (folder / "a b.json").write_text('{"id": 1}\n')
    rows = session.spark.read.json(str(folder)).join(tables["customers"], "id")
    assert external(home, rows, *files(home, "customers")) == (f"file://{folder}",)
    assert rows.count() == 1


def test_a_neighbour_whose_name_begins_the_same_is_not_declared(session: Session, home: Lake, tmp_path: Path) -> None:
    inside = Path(home.root.removeprefix("file://"))
    for name in ("orders", "orders_2"):
        (inside / name).mkdir()
        (inside / name / "a.json").write_text('{"id": 1}\n')
    assert external(home, session.spark.read.json(f"{inside}/orders"), f"{home.root}/orders") == ()
    assert "orders_2" in refused(home, session.spark.read.json(f"{inside}/orders_2"), f"{home.root}/orders")


def test_reads_are_told_once_and_in_order(session: Session, home: Lake, tables: dict[str, DataFrame]) -> None:
    rows = tables["payments"].union(tables["customers"]).union(tables["payments"])
    reads = tables_and_files_read(rows)
    assert reads.paths == tuple(sorted({*files(home, "customers"), *files(home, "payments")}))
    assert (reads.tables, reads.others) == ((), ())


def test_names_are_found_in_the_text_that_connect_gives(session: Session, named: str, capsys: Any) -> None:
    session.spark.sql(f"SELECT * FROM {named} a JOIN range(3) USING (id)").explain(extended=True)
    assert named_relations(capsys.readouterr().out) == ["spark_catalog.default.known_by_name"]
