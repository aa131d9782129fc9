"""Partition keys: the published vectors, a second implementation of them, and what only Python can get wrong."""

import copy
import json
import pickle
import shutil
import subprocess
from collections import OrderedDict
from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import PARTITION_DIMENSIONS_MAX, PARTITION_KEY_BYTES_MAX
from arco.kernel.partition_key import PartitionKey

VECTORS_FILE = Path(__file__).parents[1] / "fixtures" / "partition_keys.json"
VECTORS = json.loads(VECTORS_FILE.read_text("ascii"))
NODE = shutil.which("node")

READ = {
    "string": str,
    "integer": int,
    "boolean": lambda value: value,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "null": lambda value: value,
    "float": float,
    "decimal": Decimal,
}


def vectors(section: str, *keys: str) -> list[Any]:
    return [pytest.param(vector, id=vector["name"]) for vector in VECTORS[section] if keys & vector.keys()]


def pieces(repeated: list[dict[str, Any]]) -> str:
    return "".join(piece["text"] * piece["times"] for piece in repeated)


def string(one: dict[str, Any], field: str) -> Any:
    if f"{field}_utf16" in one:
        units = b"".join(bytes.fromhex(unit) for unit in one[f"{field}_utf16"])
        return units.decode("utf-16-be", "surrogatepass")
    if f"{field}_repeat" in one:
        return pieces(one[f"{field}_repeat"])
    return one.get(field)


def typed(dimensions: list[dict[str, Any]]) -> dict[str, Any]:
    return {string(one, "name"): READ[one["type"]](string(one, "value")) for one in dimensions}


@pytest.mark.parametrize("vector", vectors("accepted", "dimensions"))
def test_every_key_has_one_spelling_that_reads_back(vector):
    key = PartitionKey(typed(vector["dimensions"]))
    assert key.canonical() == vector["canonical"]
    again = PartitionKey.parse(vector["canonical"])
    assert again == key
    assert again.dimensions == key.dimensions
    assert [type(value) for _, value in again] == [type(value) for _, value in key]


@pytest.mark.parametrize("vector", vectors("refused", "dimensions"))
def test_values_without_an_exact_spelling_are_refused_with_the_way_out(vector):
    with pytest.raises(InvalidInput) as caught:
        PartitionKey(typed(vector["dimensions"]))
    assert vector["error"] in caught.value.message
    assert caught.value.hint != InvalidInput.default_hint
    assert len(caught.value.one_line()) < 300


@pytest.mark.parametrize("vector", vectors("refused", "text", "text_repeat"))
def test_only_canonical_text_is_read(vector):
    with pytest.raises(InvalidInput) as caught:
        PartitionKey.parse(string(vector, "text"))
    assert vector["error"] in caught.value.message
    assert len(caught.value.one_line()) < 300


def test_the_published_file_holds_enough_of_each():
    assert len(VECTORS["accepted"]) >= 40
    assert len(VECTORS["refused"]) >= 20


def test_hazard_08_distinct_keys_never_share_an_encoding():
    by_spelling: dict[str, set[Any]] = {}
    for vector in VECTORS["accepted"]:
        key = typed(vector["dimensions"])
        identity = frozenset((name, type(value).__name__, value) for name, value in key.items())
        by_spelling.setdefault(PartitionKey(key).canonical(), set()).add(identity)
    assert all(len(keys) == 1 for keys in by_spelling.values())


@pytest.mark.skipif(
    NODE is None,
    reason="node is not installed: the second implementation of the key encoding cannot run",
)
def test_a_second_implementation_agrees_on_every_vector(tmp_path):
    script = Path(__file__).with_name("partition_key_vectors.mjs")

    def run(file: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([NODE, script, file], capture_output=True, text=True, timeout=60, check=False)

    agreed = run(VECTORS_FILE)
    assert agreed.returncode == 0, agreed.stderr
    assert "0 mismatches" in agreed.stdout

    wrong = copy.deepcopy(VECTORS)
    wrong["accepted"][1]["canonical"] += "x"
    disagreeing = tmp_path / "wrong.json"
    disagreeing.write_text(json.dumps(wrong))
    assert run(disagreeing).returncode == 1


def test_the_examples_of_the_architecture_stay_valid():
    daily = PartitionKey.of({"date": date(2025, 1, 15), "region": "us-east"})
    assert daily.canonical() == "date=d:2025-01-15,region=s:us-east"
    assert PartitionKey.of(year=2025, month=1).canonical() == "month=i:1,year=i:2025"


def test_true_and_one_are_two_partitions():
    boolean, integer = PartitionKey({"a": True}), PartitionKey({"a": 1})
    assert boolean != integer
    assert len({boolean, integer, PartitionKey({"a": "1"}), PartitionKey({"a": "true"})}) == 4


def test_equal_keys_are_interchangeable_whatever_was_passed_in():
    class Region(StrEnum):
        EAST = "us-east"

    class Level(IntEnum):
        HIGH = 3

    given = PartitionKey(OrderedDict({"r": Region.EAST, "l": Level.HIGH}))
    plain = PartitionKey({"l": 3, "r": "us-east"})
    assert given == plain
    assert hash(given) == hash(plain)
    assert [(name, type(value)) for name, value in given] == [("l", int), ("r", str)]


def test_one_instant_is_one_partition_at_every_offset():
    utc = datetime(2025, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
    zones = [timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(seconds=-1)), UTC]
    keys = [PartitionKey({"at": utc.astimezone(zone)}) for zone in zones]
    assert {key.canonical() for key in keys} == {"at=t:2025-07-01T12:00:00.000005Z"}
    assert all(dict(key)["at"].tzinfo is UTC for key in keys)


def test_the_two_readings_of_a_repeated_hour_are_two_partitions():
    class ClocksGoBack(tzinfo):
        def utcoffset(self, when):
            return timedelta(hours=1 if when.fold else 2)

        def dst(self, when):
            return None

    first = datetime(2025, 10, 26, 2, 30, tzinfo=ClocksGoBack())
    second = first.replace(fold=1)
    assert first == second  # to Python, which compares clocks of one zone by what they show
    assert PartitionKey({"at": first}).canonical() == "at=t:2025-10-26T00:30:00.000000Z"
    assert PartitionKey({"at": second}).canonical() == "at=t:2025-10-26T01:30:00.000000Z"


def test_a_zone_that_does_not_know_its_offset_is_no_zone():
    class Unsure(tzinfo):
        def utcoffset(self, when):
            return None

    with pytest.raises(InvalidInput, match="without a time zone"):
        PartitionKey({"at": datetime(2025, 1, 1, tzinfo=Unsure())})


def test_a_timestamp_type_that_may_carry_more_than_it_shows_is_refused():
    class WithNanoseconds(datetime):
        nanosecond = 7

    with pytest.raises(InvalidInput, match="WithNanoseconds"):
        PartitionKey({"at": WithNanoseconds(2025, 1, 1, tzinfo=UTC)})


@pytest.mark.parametrize("value", [b"x", (1,), [1], {"a": 1}, 1j, timedelta(1), object()])
def test_other_types_are_refused(value):
    with pytest.raises(InvalidInput, match="dimension 'a' is a "):
        PartitionKey({"a": value})


@pytest.mark.parametrize("name", [1, None, b"a", True])
def test_names_that_are_not_strings_are_refused(name):
    with pytest.raises(InvalidInput, match="a dimension name is a "):
        PartitionKey({name: 1})


def test_a_key_at_the_limits_is_accepted():
    full = "a=s:" + "x" * (PARTITION_KEY_BYTES_MAX - 4)
    assert PartitionKey.parse(full).canonical() == full
    most = PartitionKey({f"d{index}": None for index in range(PARTITION_DIMENSIONS_MAX)})
    assert PartitionKey.parse(most.canonical()) == most


def test_a_dimension_given_twice_is_refused_not_overridden():
    assert PartitionKey.of({"a": 1}, b=2) == PartitionKey({"a": 1, "b": 2})
    assert PartitionKey.of() == PartitionKey({}) == PartitionKey.parse("")
    with pytest.raises(InvalidInput, match="given twice"):
        PartitionKey.of({"a": 1}, a=1)


def test_a_key_never_changes():
    source = {"a": 1}
    key = PartitionKey(source)
    source["a"] = 2
    assert dict(key) == {"a": 1}
    with pytest.raises(FrozenInstanceError):
        key.dimensions = ()  # type: ignore[misc]
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        key.other = 1  # type: ignore[attr-defined]


def test_a_key_survives_copies_and_prints_as_what_it_is():
    key = PartitionKey({"b": "x,y", "a": None})
    assert copy.deepcopy(key) == key
    assert pickle.loads(pickle.dumps(key)) == key
    assert str(key) == "a=n:null,b=s:x%2Cy"
    assert eval(repr(key)) == key
    assert list(key) == [("a", None), ("b", "x,y")]
    assert key != "a=n:null,b=s:x%2Cy"
