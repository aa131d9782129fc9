"""Schemas between the table format and Spark, with ids wherever Spark keeps them. No session is started."""

import pytest
from pyspark.sql import types

from arco.iceberg.schemas import checked
from arco.kernel.errors import InvalidInput
from arco.quality.schemas import quoted
from arco.servo.execute.spark_types import FIELD_ID, has_untaggable, iceberg_schema, spark_schema

EVERY_LEAF = [
    ("boolean", types.BooleanType()),
    ("int", types.IntegerType()),
    ("long", types.LongType()),
    ("float", types.FloatType()),
    ("double", types.DoubleType()),
    ("date", types.DateType()),
    ("timestamp", types.TimestampNTZType()),
    ("timestamptz", types.TimestampType()),
    ("string", types.StringType()),
    ("binary", types.BinaryType()),
    ("decimal(20, 3)", types.DecimalType(20, 3)),
]


def one(kind):
    return {"type": "struct", "schema-id": 0, "fields": [{"id": 4, "name": "x", "required": False, "type": kind}]}


@pytest.mark.parametrize(("kind", "spark"), EVERY_LEAF, ids=str)
def test_every_shared_type_goes_both_ways(kind, spark):
    assert spark_schema(one(kind)) == types.StructType([types.StructField("x", spark, True, {FIELD_ID: 4})])
    assert iceberg_schema(types.StructType([types.StructField("x", spark)]))["fields"][0]["type"] == kind


@pytest.mark.parametrize("kind", ["time", "uuid", "fixed[8]", "timestamp_ns", "variant", "unknown", "geometry(srid:0)"])
def test_a_type_that_spark_lacks_is_refused_by_the_name_of_its_column(kind):
    with pytest.raises(InvalidInput, match="'x' has type"):
        spark_schema(one(kind))


@pytest.mark.parametrize(
    ("spark", "kind"),
    [
        (types.ByteType(), "int"),
        (types.ShortType(), "int"),
        (types.CharType(3), "string"),
        (types.VarcharType(3), "string"),
    ],
    ids=str,
)
def test_a_type_that_only_spark_has_becomes_one_that_holds_it(spark, kind):
    assert iceberg_schema(types.StructType([types.StructField("x", spark)]))["fields"][0]["type"] == kind


@pytest.mark.parametrize("spark", [types.NullType(), types.DayTimeIntervalType(), types.VariantType()], ids=str)
def test_an_output_of_a_type_that_no_table_holds_is_refused_with_the_way_out(spark):
    inner = types.StructType([types.StructField("x", spark)])
    with pytest.raises(InvalidInput, match=r"'s\.x' has Spark's type") as refusal:
        iceberg_schema(types.StructType([types.StructField("s", inner)]))
    assert "cast" in refusal.value.hint


NESTED = types.StructType(
    [
        types.StructField("id", types.LongType(), nullable=False),
        types.StructField("s", types.StructType([types.StructField("a", types.IntegerType(), nullable=False)])),
        types.StructField("l", types.ArrayType(types.StructType([types.StructField("b", types.StringType())]))),
        types.StructField("m", types.MapType(types.StringType(), types.DoubleType(), valueContainsNull=False)),
    ]
)


def test_nested_types_are_numbered_and_valid():
    schema = checked(iceberg_schema(NESTED), format_version=2)
    back = spark_schema(schema)
    assert back["l"].dataType.elementType["b"].metadata[FIELD_ID] == 6
    assert back["s"].dataType["a"].metadata[FIELD_ID] == 3
    assert [one.simpleString() for one in back] == [one.simpleString() for one in NESTED]


def test_nothing_is_required_that_spark_happened_to_know_as_never_null():
    schema = iceberg_schema(NESTED)
    assert not any(field["required"] for field in schema["fields"])
    assert schema["fields"][3]["type"]["value-required"] is False


def test_a_comment_becomes_the_description_of_a_column():
    commented = types.StructField("x", types.LongType(), True, {"comment": "how many"})
    assert iceberg_schema(types.StructType([commented]))["fields"][0]["doc"] == "how many"


@pytest.mark.parametrize(("column", "lacks"), [("id", False), ("s", False), ("l", True), ("m", True)])
def test_schemas_whose_ids_spark_cannot_write_are_known(column, lacks):
    assert has_untaggable(iceberg_schema(types.StructType([NESTED[column]]))) is lacks


def test_a_list_inside_a_struct_is_found_too():
    inner = types.StructType([types.StructField("deep", types.StructType([NESTED["l"]]))])
    assert has_untaggable(iceberg_schema(types.StructType([types.StructField("top", inner)])))


def test_names_are_quoted_whatever_is_in_them():
    assert quoted(("a.b", "c`d")) == "`a.b`.`c``d`"
