"""Partitions as people write them: what is printed can be given back, and means the same."""

from datetime import UTC, date, datetime

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.partition_key import PartitionKey, Scalar
from arco.read.partition_names import key_of
from arco.surface.cli.partition_spelling import spelled_key, spelled_ranges

AXES = [
    {"name": "date", "kind": "daily"},
    {"name": "hour", "kind": "hourly"},
    {"name": "shard", "kind": "static", "values": [1, 2]},
    {"name": "region", "kind": "dynamic"},
]


@pytest.mark.parametrize(
    ("dimensions", "shown"),
    [
        ({"date": date(2025, 1, 31)}, "date=2025-01-31"),
        ({"hour": datetime(2025, 1, 31, 12, tzinfo=UTC)}, "hour=2025-01-31T12:00"),
        ({"shard": 2, "region": "de"}, "region=de,shard=2"),
        ({"region": "a,b=c"}, "region=s:a%2Cb%3Dc"),
        ({"region": "münchen"}, "region=münchen"),
        ({}, ""),
    ],
)
def test_what_is_shown_can_be_given_back(dimensions: dict[str, Scalar], shown: str) -> None:
    key = PartitionKey(dimensions).canonical()
    assert spelled_key(key) == shown
    assert key_of(shown, AXES) == key
    assert key_of(key, AXES) == key


@pytest.mark.parametrize("text", ["date", "day=2025-01-31", "date=soon", "date=2025-01-31;region=de"])
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        key_of(text, AXES)


def test_ranges_are_said_by_their_first_and_last_day() -> None:
    assert spelled_ranges([{"date": ["2025-01-01", "2025-02-01"], "region": [["de", "fr"]]}]) == (
        "date=2025-01-01..2025-01-31, region=de,fr"
    )
    assert spelled_ranges([{"date": ["2025-01-01", "2025-01-02"]}, {"day": [[{"d": "2025-01-05"}]]}]) == (
        "date=2025-01-01; day=2025-01-05"
    )
    assert spelled_ranges([{"hour": ["2025-01-01T00:00:00", "2025-01-01T02:00:00"]}]) == (
        "hour=2025-01-01T00:00:00 until before 2025-01-01T02:00:00"
    )
    assert spelled_ranges([{}]) == ""
