"""The footers of Parquet files: what a file says of itself."""

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from arco.kernel.errors import CorruptObject, NotFound
from arco.kernel.ids import clip


def footer_of(io: FileIO, location: str) -> pq.FileMetaData:
    try:
        with io.new_input(location).open() as stream:
            return pq.read_metadata(stream)
    except FileNotFoundError:
        raise NotFound(f"the data file {clip(location, 300)} is gone", hint="it was removed by somebody else") from None
    except pa.ArrowInvalid as error:
        raise CorruptObject(f"{clip(location, 300)} is not a Parquet file: {clip(str(error), 200)}") from error


def arrow_schema_of(io: FileIO, location: str) -> pa.Schema:
    return footer_of(io, location).schema.to_arrow_schema()
