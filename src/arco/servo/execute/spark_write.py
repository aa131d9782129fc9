"""An output as data files: Spark writes Parquet itself, with the table's field ids, one partition tuple a file.

    conform (columns, types, ids) → lay out (hidden partition columns, distribution, order) → write → list → describe

Hidden partition columns become folders and leave the files. The attempt's directory is new, so listing it finds what this attempt
committed and nothing else. Schemas with lists or maps go another way to the same files (`spark_arrow_writer.py`), because
Spark's own writer gives elements, keys and values no id. Nothing written here is visible before a commit names it.
"""

from pyiceberg.io import FileIO
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as f

from arco.fold.spark_session import check_session
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import AlreadyExists
from arco.kernel.ids import clip
from arco.quality.schemas import quoted
from arco.servo.execute.data_files import NewFile, Written, describe
from arco.servo.execute.file_access import files_below
from arco.servo.execute.partition_text import NULL, TEXT_BYTES_MAX, VALUE, column_name, is_number, parse_folders
from arco.servo.execute.spark_arrow_writer import write_with_arrow
from arco.servo.execute.spark_transforms import Part, parts_of, sorts_of
from arco.servo.execute.spark_types import has_untaggable, spark_schema
from arco.servo.execute.target import Distribution, Target


def write(rows: DataFrame, target: Target, io: FileIO) -> Written:
    """Write all rows of an output, and describe the files."""
    check_session(rows.sparkSession)
    if files_below(io, target.directory):
        raise AlreadyExists(f"{clip(target.directory, 300)} holds files already", hint="use a new attempt")
    parts = parts_of(target.spec, target.schema)
    laid_out = _laid_out(conformed(rows, target.schema), parts, target)
    hidden = [column_name(place) for place in range(len(parts))]
    kinds = [part.kind for part in parts]
    if has_untaggable(target.schema):
        files = write_with_arrow(laid_out, target, hidden, kinds, io)
    else:
        _write_natively(laid_out, target, hidden)
        found = files_below(io, target.directory)
        files = [NewFile(one.location, one.size_bytes, parse_folders(one.location, kinds)) for one in found]
    order_id = int(target.order["order-id"]) if target.order["fields"] else None
    return describe(
        io, files, target.schema, spec_id=target.spec["spec-id"], sort_order_id=order_id, properties=target.properties
    )


def conformed(rows: DataFrame, schema: JsonObject) -> DataFrame:
    """The output with the table's columns, in the table's order and types, each with its id."""
    wanted = spark_schema(schema).fields
    # `to` shapes and casts, and gives inner fields their ids. At the top level it would only say ids that the optimizer
    # forgets (and then takes an alias with the same id for superfluous): there they are on aliases alone.
    shaped = rows.to(types.StructType([types.StructField(one.name, one.dataType) for one in wanted]))
    return shaped.select(*(f.col(quoted((one.name,))).alias(one.name, metadata=one.metadata) for one in wanted))


def _laid_out(rows: DataFrame, parts: list[Part], target: Target) -> DataFrame:
    hidden = [column_name(place) for place in range(len(parts))]
    rows = rows.select("*", *(_hidden(part).alias(name) for part, name in zip(parts, hidden, strict=True)))
    if hidden and target.distribution is Distribution.BY_PARTITION:
        # Rows of one partition together; what is too much for one file is split, what is little is joined.
        rows = rows.hint("rebalance", *hidden)
    sorts = sorts_of(target.order, target.schema)
    if sorts or (hidden and has_untaggable(target.schema)):
        rows = rows.sortWithinPartitions(*(f.col(name) for name in hidden), *sorts)
    return rows


def _write_natively(rows: DataFrame, target: Target, hidden: list[str]) -> None:
    codec = target.properties.get("write.parquet.compression-codec", "zstd")
    writer = rows.write.mode("error").option("compression", codec)
    if target.rows_per_file is not None:
        writer = writer.option("maxRecordsPerFile", target.rows_per_file)
    if hidden:
        writer = writer.partitionBy(*hidden)
    writer.parquet(target.directory)


def _hidden(part: Part) -> Column:
    """A partition value as `partition_text.py` reads it."""
    value = part.value
    if is_number(part.kind):
        return value.cast("int") if part.kind == "boolean" else value
    if part.kind in {"string", "binary"}:
        size = f.octet_length(value)
        body = f.lower(f.hex(value))
        reason = f"a value of partition field {part.name} is longer than {TEXT_BYTES_MAX} bytes"
        body = f.when(size <= TEXT_BYTES_MAX, body).otherwise(f.raise_error(f.lit(reason)).cast("string"))
    else:
        body = value.cast("string")
    return f.when(value.isNull(), f.lit(NULL)).otherwise(f.concat(f.lit(VALUE), body))
