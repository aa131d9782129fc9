"""Avro files, read as far as manifests and manifest lists need it: records as plain values, by the schema that is in the file.

PyIceberg reads them too, and takes a second to load, which is felt where only a plan is wanted. Compressed blocks are understood
where Python's own library does; any other file is for PyIceberg (`UnknownCodec`). What is damaged is refused, and nothing is
believed about sizes: a count is never greater than the bytes that could hold it.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from arco.kernel.errors import CorruptObject
from arco.kernel.ids import clip
from arco.kernel.limits import AVRO_BLOCK_BYTES_MAX

Read = Callable[[bytes, int], tuple[Any, int]]
"""From bytes and a place in them to a value and the place behind it."""

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16


class UnknownCodec(Exception):
    """A file that is compressed in a way that is not read here."""


def records(data: bytes, name: str) -> list[dict[str, Any]]:
    """Every record of a file."""
    try:
        return list(_records(data))
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, struct.error, zlib.error) as error:
        raise CorruptObject(f"{clip(name, 300)} cannot be read: {type(error).__name__}: {clip(str(error), 100)}") from error


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is not an Avro file")
    header, at = _map(_bytes)(data, len(_MAGIC))
    codec = header.get("avro.codec", b"null").decode()
    if codec not in {"null", "deflate"}:
        raise UnknownCodec(codec)
    read = _reader(json.loads(header["avro.schema"]), {})
    sync, at = _taken(data, at, _SYNC_BYTES)
    while at < len(data):
        count, at = _long(data, at)
        size, at = _long(data, at)
        block, at = _taken(data, at, size)
        ended, at = _taken(data, at, _SYNC_BYTES)
        if ended != sync:
            raise ValueError("a block does not end where it says")
        yield from _of_block(block if codec == "null" else _inflated(block), count, read)


def _of_block(block: bytes, count: int, read: Read) -> Iterator[dict[str, Any]]:
    at = 0
    for _ in range(_bounded(count, block)):
        value, at = read(block, at)
        yield value
    if at != len(block):
        raise ValueError("a block holds more than it says")


def _inflated(block: bytes) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    found = stream.decompress(block, AVRO_BLOCK_BYTES_MAX)
    if not stream.eof:
        raise ValueError("a block is cut short, or too large")
    return found


def _reader(schema: Any, named: dict[str, Read]) -> Read:
    """What reads values of a schema. Types that have a name are known by it from then on."""
    if isinstance(schema, list):
        return _union([_reader(one, named) for one in schema])
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        return _reader(kind, named)
    match kind:
        case "record":
            # A record may hold itself: it is known before its fields are.
            fields: list[tuple[str, Read]] = []
            named[schema["name"]] = found = _record(fields)
            fields += [(one["name"], _reader(one["type"], named)) for one in schema["fields"]]
            return found
        case "fixed":
            size = int(schema["size"])
            named[schema["name"]] = fixed = _fixed(size)
            return fixed
        case "array":
            return _array(_reader(schema["items"], named))
        case "map":
            return _map(_reader(schema["values"], named))
        case _:
            return _PRIMITIVES[kind] if kind in _PRIMITIVES else named[kind]


def _record(fields: list[tuple[str, Read]]) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found = {}
        for name, field in fields:
            found[name], at = field(data, at)
        return found, at

    return read


def _union(choices: list[Read]) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        place, at = _long(data, at)
        if place < 0:
            raise ValueError(f"choice {place}")
        return choices[place](data, at)

    return read


def _array(item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        found = []
        count, at = _count(data, at)
        while count:
            for _ in range(count):
                one, at = item(data, at)
                found.append(one)
            count, at = _count(data, at)
        return found, at

    return read


def _map(value: Read) -> Read:
    entries = _array(_record([("key", _string), ("value", value)]))

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found, at = entries(data, at)
        return {one["key"]: one["value"] for one in found}, at

    return read


def _fixed(size: int) -> Read:
    return lambda data, at: _taken(data, at, size)


def _count(data: bytes, at: int) -> tuple[int, int]:
    """How many items come next; a negative number is followed by their size in bytes."""
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
    return _bounded(abs(count), data), at


def _bounded(count: int, data: bytes) -> int:
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} items in {len(data)} bytes")
    return count


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    found, shift = byte & 0x7F, 7
    while byte & 0x80:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
    return (found >> 1) ^ -(found & 1), at


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size < 0 or at + size > len(data):
        raise ValueError(f"{size} bytes at {at} of {len(data)}")
    return data[at : at + size], at + size


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    return _taken(data, at, size)


def _string(data: bytes, at: int) -> tuple[str, int]:
    found, at = _bytes(data, at)
    return found.decode(), at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    return data[at] == 1, at + 1


def _number(form: str, size: int) -> Read:
    return lambda data, at: (struct.unpack_from(form, data, at)[0], at + size)


_PRIMITIVES: dict[str, Read] = {
    "null": lambda _, at: (None, at),
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _number("<f", 4),
    "double": _number("<d", 8),
    "bytes": _bytes,
    "string": _string,
}
