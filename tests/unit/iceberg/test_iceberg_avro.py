"""Avro as manifests use it: the same records that PyIceberg reads, and nothing believed of damaged bytes."""

import json
import struct
import zlib
from typing import Any

import pytest

from arco.iceberg.avro import UnknownCodec, records
from arco.kernel.errors import CorruptObject

SYNC = bytes(range(16))


def long(value: int) -> bytes:
    value, found = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return long(len(data)) + data


def file(schema: Any, *blocks: tuple[int, bytes], codec: str | None = None) -> bytes:
    words = {"avro.schema": json.dumps(schema)} | ({} if codec is None else {"avro.codec": codec})
    header = long(len(words)) + b"".join(text(key) + text(value) for key, value in words.items()) + long(0)
    return b"Obj\x01" + header + SYNC + b"".join(long(count) + text(data) + SYNC for count, data in blocks)


def of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("long", long(-3), -3),
        ("long", long(2**62), 2**62),
        ("int", long(0), 0),
        ("boolean", b"\x01", True),
        ("double", struct.pack("<d", 0.5), 0.5),
        ("float", struct.pack("<f", 0.5), 0.5),
        ("string", text("größer"), "größer"),
        ("bytes", text(b"\xff"), b"\xff"),
        (["null", "long"], long(0), None),
        (["null", "long"], long(1) + long(7), 7),
        ({"type": "fixed", "name": "f", "size": 3}, b"abc", b"abc"),
        ({"type": "int", "logicalType": "date"}, long(20089), 20089),
        ({"type": "array", "items": "long"}, long(2) + long(1) + long(2) + long(0), [1, 2]),
        ({"type": "array", "items": "long"}, long(-1) + long(1) + long(5) + long(0), [5]),
        ({"type": "map", "values": "long"}, long(1) + text("a") + long(1) + long(0), {"a": 1}),
        (of("long") | {"name": "inner"}, long(4), {"x": 4}),
    ],
)
@pytest.mark.parametrize("codec", [None, "null", "deflate"])
def test_every_kind_of_value_is_read(kind: Any, data: bytes, value: Any, codec: str | None) -> None:
    packed = data
    if codec == "deflate":
        stream = zlib.compressobj(wbits=-15)
        packed = stream.compress(data) + stream.flush()
    found = records(file(of(kind), (1, packed), codec=codec), "x.avro")
    assert found == [{"x": value}]
    assert type(found[0]["x"]) is type(value)


def test_a_type_is_known_by_its_name_and_may_hold_itself() -> None:
    chain = of(["null", "r"])
    assert records(file(chain, (1, long(1) + long(0))), "x.avro") == [{"x": {"x": None}}]


def test_blocks_follow_each_other() -> None:
    assert records(file(of("long"), (2, long(1) + long(2)), (1, long(3))), "x.avro") == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_another_codec_is_for_somebody_else() -> None:
    with pytest.raises(UnknownCodec):
        records(file(of("long"), (1, b""), codec="zstandard"), "x.avro")


def test_a_file_that_is_cut_short_anywhere_is_damaged() -> None:
    whole = file(of("string"), (2, text("abc") + text("defg")))
    for size in range(len(whole)):
        if size == len(file(of("string"))):
            continue  # an Avro file without any block is one
        with pytest.raises(CorruptObject, match=r"x\.avro cannot be read"):
            records(whole[:size], "x.avro")


@pytest.mark.parametrize(
    ("kind", "count", "data"),
    [
        ("null", 2**40, b""),
        ({"type": "array", "items": "null"}, 1, long(2**40) + long(0)),
        ("bytes", 1, long(2**40)),
        ("bytes", 1, long(-1)),
        (["null"], 1, long(-1)),
        (["null"], 1, long(3)),
        ("long", 1, long(1) + b"more"),
        ("no such type", 1, b""),
    ],
)
def test_sizes_are_not_believed(kind: Any, count: int, data: bytes) -> None:
    with pytest.raises(CorruptObject):
        records(file(of(kind), (count, data)), "x.avro")


def test_a_block_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco.iceberg.avro.AVRO_BLOCK_BYTES_MAX", 100)
    stream = zlib.compressobj(wbits=-15)
    packed = stream.compress(text("a" * 1000)) + stream.flush()
    with pytest.raises(CorruptObject):
        records(file(of("string"), (1, packed), codec="deflate"), "x.avro")
