"""Documents of ranges compared, against every partition written out."""

from datetime import date, timedelta
from itertools import product

import pytest

from arco.kernel.partition_key import PartitionKey
from arco.read.boxes import count, document_of, holds, overlaps

DAYS = [date(2025, 1, 30) + timedelta(days=one) for one in range(5)]
REGIONS = ["de", "fr", "us"]
KINDS = {"date": "daily", "region": "static"}


def box(first: int, end: int, *regions: str) -> dict[str, object]:
    return {"date": [(DAYS[0] + timedelta(days=one)).isoformat() for one in (first, end)], "region": [list(regions)]}


def members(document: list[dict[str, object]]) -> set[str]:
    found = set()
    for one in document:
        first, end = (date.fromisoformat(text) for text in one["date"])  # type: ignore[attr-defined]
        for day, region in product(DAYS, one["region"][0]):  # type: ignore[index]
            if first <= day < end:
                found.add(PartitionKey.of(date=day, region=region).canonical())
    return found


DOCUMENTS = [
    [box(0, 2, "de")], [box(1, 3, "de", "fr")], [box(2, 4, "us")], [box(0, 1, "fr"), box(3, 4, "de")], [],
]  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_holds_its_members_and_no_others(document: list[dict[str, object]]) -> None:
    every = [PartitionKey.of(date=day, region=region).canonical() for day, region in product(DAYS, REGIONS)]
    assert {key for key in every if holds(document, key)} == members(document)
    assert count(document, KINDS) == len(members(document))
    assert all(overlaps(document, document_of(key)) == (key in members(document)) for key in every)


@pytest.mark.parametrize("here", DOCUMENTS)
@pytest.mark.parametrize("there", DOCUMENTS)
def test_documents_overlap_if_they_share_a_partition(here: list[dict[str, object]], there: list[dict[str, object]]) -> None:
    assert overlaps(here, there) == bool(members(here) & members(there))


def test_the_whole_of_an_asset_meets_everything() -> None:
    assert overlaps([{}], [{}])
    assert overlaps([{}], [box(0, 1, "de")])
    assert holds([{}], "")
    assert count([{}], {}) == 1


def test_hours_and_months_are_counted() -> None:
    assert count([{"h": ["2025-01-01T00:00:00", "2025-01-02T00:00:00"]}], {"h": "hourly"}) == 24
    assert count([{"m": ["2024-11-01", "2025-02-01"]}], {"m": "monthly"}) == 3
    key = PartitionKey.of(n=1).canonical()
    assert holds([{"n": [[1]]}], key)
    assert not holds([{"n": [[True]]}], key)
