"""A metadata document as the bytes of its file: JSON, compressed when the file's name says so.

Equal documents have equal bytes, in every process: two attempts of one commit must be able to share a file. What must never
enter: what the document means.
"""

import gzip
import zlib

import msgspec

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import CorruptObject, TooLarge
from arco.kernel.limits import METADATA_BYTES_MAX

_GZIP_ENDINGS = (".gz.metadata.json", ".metadata.json.gz")
_GZIP_WINDOW = zlib.MAX_WBITS | 16
# Metadata compresses ten times at any level; the fastest keeps a commit short.
_GZIP_LEVEL = 1


def to_bytes(document: JsonObject, location: str) -> bytes:
    data = msgspec.json.encode(document)
    if len(data) > METADATA_BYTES_MAX:
        raise TooLarge(
            f"metadata of {len(data)} bytes is over the limit of {METADATA_BYTES_MAX} bytes", hint="expire old snapshots"
        )
    return gzip.compress(data, compresslevel=_GZIP_LEVEL, mtime=0) if _is_gzip(location) else data


def from_bytes(data: bytes, location: str) -> object:
    """The parsed JSON; whatever is not one whole JSON text within the limit is a corrupt object."""
    plain = plain_bytes(data, location)
    try:
        return msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{location}: not JSON ({error})") from None


def plain_bytes(data: bytes, location: str) -> bytes:
    """The JSON text of a file, uncompressed if it was compressed."""
    plain = _unpacked(data, location) if _is_gzip(location) else data
    if len(plain) > METADATA_BYTES_MAX:
        raise TooLarge(f"{location}: metadata is over the limit of {METADATA_BYTES_MAX} bytes")
    return plain


def plain_size(data: bytes, location: str) -> int:
    """How large the JSON text of a file is, without unpacking it: the end of a gzip file says so."""
    return max(len(data), int.from_bytes(data[-4:], "little")) if _is_gzip(location) else len(data)


def _is_gzip(location: str) -> bool:
    return location.endswith(_GZIP_ENDINGS)


def _unpacked(data: bytes, location: str) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        plain = unpacker.decompress(data, METADATA_BYTES_MAX + 1)
    except zlib.error as error:
        raise CorruptObject(f"{location}: not gzip ({error})") from None
    if len(plain) <= METADATA_BYTES_MAX and (not unpacker.eof or unpacker.unused_data):
        raise CorruptObject(f"{location}: the compressed data is cut off or followed by something else")
    return plain
