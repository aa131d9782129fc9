"""What is remembered for a whole plan is what the mapping says, and versions are compared in whichever order they stand."""

from datetime import date

import pytest

from arco.servo.partitions.mappings import All, Custom, Ends, Last, Mapping, Window
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.needs import AllNeeds
from arco.servo.plan.staleness import _says_the_same
from arco.servo.plan.writing import Scribe
from arco.servo.sdk.dimensions import daily, partitioned

DAYS = partitioned(daily("date", start=date(2025, 1, 1)))
NOON_MS = 1_736_510_400_000  # 2025-01-10 12:00 UTC


def ends(days: Partitioning = DAYS) -> Ends:
    whole = days.everything(NOON_MS)
    return Ends(days, days, whole, whole)


@pytest.mark.parametrize("mapping", [All(), Last(), Window(), Window(-6, 0), Window(1, 1)], ids=repr)
def test_an_answer_is_the_mappings_own_however_often_it_is_asked(mapping: Mapping) -> None:
    both, scribe = ends(), Scribe(DAYS)
    ((first, end),) = next(both.all_downstream.boxes())
    needs = AllNeeds().between(mapping, both, scribe)
    sets = [PartitionSet.box([(low, low + width)]) for low in range(first, end) for width in (1, 3)]
    sets += [PartitionSet.nothing(1), PartitionSet.of(1, [[(first, first + 1)], [(end - 1, end)]])]
    for one in [*sets, *sets]:
        needed, document = needs.of(one)
        assert needed == mapping.needed(one, both)
        assert document == DAYS.document(needed)


def test_assets_that_read_alike_share_answers_and_mappings_of_the_projects_own_do_not() -> None:
    every, scribe = AllNeeds(), Scribe(DAYS)
    assert every.between(Window(-1, 0), ends(), scribe) is every.between(Window(-1, 0), ends(), scribe)
    assert every.between(Window(-1, 0), ends(), scribe) is not every.between(Window(0, 0), ends(), scribe)
    own = Custom(lambda made: [made])
    assert every.between(own, ends(), scribe) is not every.between(own, ends(), scribe)


def test_versions_say_the_same_in_any_order_and_only_then() -> None:
    one, other = (
        {"partitions": [{"date": ["a", "b"]}], "version": "v1"},
        {"partitions": [{"date": ["b", "c"]}], "version": "v2"},
    )
    assert _says_the_same([one, other], [other, one])
    assert _says_the_same([], [])
    assert not _says_the_same([one, other], [one])
    assert not _says_the_same([one], [one, other])
    assert not _says_the_same([one, other], [one, one])
    assert not _says_the_same([one], [{**one, "version": "v2"}])
    assert not _says_the_same([one], [{**one, "partitions": other["partitions"]}])
