"""Search: beginnings, typos, ranking, and nothing that is no longer so."""

import pytest

from arco.fold.search_tables import POSTINGS, TRIGRAMS
from arco.fold.vocabulary import bucket_of
from arco.kernel.errors import InvalidInput
from arco.read.search import search
from unit.read.ground import Ground


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("orders", "shop.orders"),
        ("ord", "shop.orders"),
        ("Orders", "shop.orders"),
        ("ordres", "shop.orders"),
        ("dashbord", "shop.dashboard"),
        ("pii", "shop.customers"),
        ("cy", "ops.features"),
        ("currency", "shop.orders"),
        ("ml model", "ops.model"),
        ("revenue", "shop.revenue"),
    ],
)
def test_what_is_meant_comes_first(ground: Ground, query: str, first: str) -> None:
    found = ground.ask(search, query)
    assert found.hits
    assert found.hits[0].name == first
    scores = [(len(found.hits[0].matched) > 0, one.score) for one in found.hits]
    assert all(one for one, _ in scores)


def test_typos_say_what_they_were_taken_for(ground: Ground) -> None:
    assert ground.ask(search, "ordres").corrected == {"ordres": ("orders",)}
    assert ground.ask(search, "orders").corrected == {}


@pytest.mark.parametrize("query", ["predictor", "legacy", "memo", "amounts", "old", "xyzzy"])
def test_what_is_no_longer_so_is_not_found(ground: Ground, query: str) -> None:
    """A former word of the index, a column that was dropped, an asset that was retired, and nothing at all."""
    assert "ops.model" not in [one.name for one in ground.ask(search, query).hits]
    assert "ops.old" not in [one.name for one in ground.ask(search, query).hits]
    if query in {"predictor", "legacy", "memo", "xyzzy"}:
        assert ground.ask(search, query).hits == ()


def test_every_word_counts_and_all_words_come_first(ground: Ground) -> None:
    hits = ground.ask(search, "core daily").hits
    assert [one.name for one in hits][:2] == ["shop.orders", "shop.customers"]
    assert hits[0].matched == ("tag:core", "tag:daily")


def test_one_namespace_is_searched_in_its_buckets_alone(ground: Ground) -> None:
    ground.reader.touched.clear()
    found = ground.ask(search, "ops", namespace="ops")
    assert found.hits
    assert {one.namespace for one in found.hits} == {"ops"}
    index = [file for file in ground.reader.touched.values() if file.table in {POSTINGS.name, TRIGRAMS.name}]
    assert all(bucket_of("ops") in file.buckets for file in index)
    everything = [file for table in (POSTINGS, TRIGRAMS) for file in ground.reader.cut.layers(table).files()]
    assert (bucket_of("ops") < 128) != (bucket_of("shop") < 128)
    assert len(index) == len([file for file in everything if bucket_of("ops") in file.buckets]) < len(everything)


def test_without_a_word_nothing_is_searched(ground: Ground) -> None:
    with pytest.raises(InvalidInput, match="no word"):
        ground.ask(search, " ._- ")
