"""Default values of columns (format version 3): kept as they were sent, read by every client, refused if one could not."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from .spark_session import Spark

CASES = json.loads((Path(__file__).parents[1] / "fixtures/iceberg/default_values.json").read_bytes())
FITTING = [case for case in CASES if case["fits"]]


class Tables:
    """The tables of one namespace, over plain HTTP."""

    def __init__(self, address: str, namespace: str) -> None:
        self._address = f"{address}/v1/default.default/namespaces/{namespace}/tables"

    def create(self, name: str, fields: list[Any], version: int = 3) -> Any:
        schema = {"type": "struct", "fields": fields}
        return self._ask("", {"name": name, "schema": schema, "properties": {"format-version": str(version)}})

    def evolve(self, name: str, *fields: Any) -> Any:
        """A table whose schema is its current one, with columns that are new or changed."""
        columns = {field["id"]: field for field in (*current(self.load(name))["fields"], *fields)}
        new = {"action": "add-schema", "schema": {"type": "struct", "fields": list(columns.values())}}
        body = {"requirements": [], "updates": [new, {"action": "set-current-schema", "schema-id": -1}]}
        return self._ask(f"/{name}", body)

    def load(self, name: str) -> Any:
        return self._ask(f"/{name}", None)

    def _ask(self, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._address}{path}", data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise BadRequestError(json.loads(error.read())["error"]["message"]) from None


@pytest.fixture
def tables(shared_address: str, db: str) -> Tables:
    return Tables(shared_address, db.removeprefix("arco."))


@pytest.fixture
def catalog(shared_address: str) -> Iterator[RestCatalog]:
    with RestCatalog("other", uri=shared_address) as found:
        yield found


def column(field_id: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    defaults = {word.replace("_", "-"): value for word, value in more.items() if word != "required"}
    return {"id": field_id, "name": name, "required": more.get("required", False), "type": kind, **defaults}


def current(loaded: Any) -> Any:
    metadata = loaded["metadata"]
    return next(one for one in metadata["schemas"] if one["schema-id"] == metadata["current-schema-id"])


def both(value: Any) -> dict[str, Any]:
    return {"initial_default": value, "write_default": value}


# Kept


def test_every_kind_of_default_is_kept_as_it_was_sent(tables: Tables) -> None:
    fields = [column(number, f"c{number}", case["type"], **both(case["value"])) for number, case in enumerate(FITTING, 1)]
    nested = {"type": "struct", "fields": [column(101, "x", "int", initial_default=7, write_default=8)]}
    fields.append(column(len(fields) + 1, "s", nested, initial_default={}))
    made = tables.create("t", fields)
    fields[-1]["type"]["fields"][0]["id"] = len(fields) + 1
    assert current(made)["fields"] == fields
    assert tables.load("t")["metadata"] == made["metadata"]
    written = Path(made["metadata-location"].removeprefix("file://")).read_text()
    assert json.loads(written) == made["metadata"]


def test_a_default_for_new_rows_changes_and_the_one_for_old_rows_stays(tables: Tables) -> None:
    tables.create("t", [column(1, "id", "long")])
    tables.evolve("t", column(2, "n", "int", initial_default=1, write_default=1))
    made = tables.evolve("t", column(2, "n", "int", initial_default=1, write_default=5))
    assert current(made)["fields"][1] == column(2, "n", "int", initial_default=1, write_default=5)
    assert [len(one["fields"]) for one in made["metadata"]["schemas"]] == [1, 2, 2]
    assert current(tables.evolve("t", column(2, "n", "int", initial_default=1)))["fields"][1] == column(
        2, "n", "int", initial_default=1
    )


# Refused


@pytest.mark.parametrize("word", ["initial-default", "write-default"])
def test_what_is_not_a_value_of_its_type_is_refused_and_changes_nothing(tables: Tables, word: str) -> None:
    before = tables.create("t", [column(1, "id", "long")])
    for case in CASES:
        if not case["fits"]:
            wrong = column(2, "n", case["type"], **{word: case["value"]})
            with pytest.raises(BadRequestError, match=f"{word} of 'n' is not a value of its type"):
                tables.evolve("t", wrong)
            with pytest.raises(BadRequestError, match=f"{word} of 'n' is not a value of its type"):
                tables.create("other", [wrong])
    assert tables.load("t") == before


def test_a_default_for_old_rows_needs_version_3(tables: Tables) -> None:
    with pytest.raises(BadRequestError, match="not supported until v3"):
        tables.create("t", [column(1, "n", "int", initial_default=1)], version=2)
    tables.create("t", [column(1, "n", "int")], version=2)
    with pytest.raises(BadRequestError, match="not supported until v3"):
        tables.evolve("t", column(2, "m", "int", initial_default=1))
    assert len(tables.load("t")["metadata"]["schemas"]) == 1


# Read


def test_java_reads_what_is_let_through(spark: Spark) -> None:
    # A default that it cannot read would make the whole table unreadable for Spark, Flink and Trino.
    iceberg = spark.session.sparkContext._jvm.org.apache.iceberg
    refused = []
    for case in FITTING:
        try:
            iceberg.SingleValueParser.fromJson(
                iceberg.types.Types.fromPrimitiveString(case["type"]), json.dumps(case["value"])
            )
        except Py4JJavaError as error:
            refused.append((case, str(error.java_exception)))
    assert refused == []


def test_old_rows_have_the_first_default_and_new_rows_the_last(
    spark: Spark, db: str, tables: Tables, catalog: RestCatalog
) -> None:
    spark(f"CREATE TABLE {db}.t (id BIGINT) TBLPROPERTIES ('format-version' = '3')")
    spark(f"INSERT INTO {db}.t VALUES (1)")
    tables.evolve("t", column(2, "land", "string", initial_default="de", write_default="de"))
    tables.evolve("t", column(3, "price", "decimal(9, 2)", required=True, initial_default="7.50", write_default="7.50"))
    spark(f"REFRESH TABLE {db}.t")
    spark(f"INSERT INTO {db}.t (id) VALUES (2)")
    tables.evolve("t", column(2, "land", "string", initial_default="de", write_default="fr"))
    spark(f"REFRESH TABLE {db}.t")
    spark(f"INSERT INTO {db}.t VALUES (3, DEFAULT, 9.99)")
    expected = [(1, "de", Decimal("7.50")), (2, "de", Decimal("7.50")), (3, "fr", Decimal("9.99"))]
    assert spark(f"SELECT id, land, price FROM {db}.t ORDER BY id") == expected
    assert spark.column(f"SELECT id FROM {db}.t WHERE land = 'de'") == [1, 2]
    rows = catalog.load_table(f"{db.removeprefix('arco.')}.t").scan().to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == expected


def test_pyiceberg_knows_the_defaults(tables: Tables, catalog: RestCatalog, db: str) -> None:
    tables.create(
        "t", [column(1, "n", "int", initial_default=1, write_default=2), column(2, "d", "date", **both("2026-01-31"))]
    )
    number, day = catalog.load_table(f"{db.removeprefix('arco.')}.t").schema().fields
    assert (number.initial_default, number.write_default) == (1, 2)
    assert day.initial_default == day.write_default is not None


def test_spark_itself_sets_no_default_yet(spark: Spark, db: str) -> None:
    # Iceberg's runtime 1.12 reads them and uses them, but has no statement for them: docs/clients/spark.md says so.
    spark(f"CREATE TABLE {db}.t (id BIGINT) TBLPROPERTIES ('format-version' = '3')")
    with pytest.raises(Exception, match="setting default values in Spark is currently unsupported"):
        spark(f"ALTER TABLE {db}.t ADD COLUMN n INT DEFAULT 5")
    with pytest.raises(Exception, match="does not support column default value"):
        spark(f"CREATE TABLE {db}.u (id BIGINT, n INT DEFAULT 5) TBLPROPERTIES ('format-version' = '3')")
    assert [row[0] for row in spark(f"DESCRIBE TABLE {db}.t")] == ["id"]
