"""Asset keys: `namespace.name`, one spelling, nothing else."""

import pytest

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import ASSET_NAME_CHARS_MAX

LONGEST = "a" * ASSET_NAME_CHARS_MAX
GOOD_PARTS = ("a", "orders", "daily_orders_2", "a_", "a0", LONGEST)
BAD_PARTS = (
    "", "0a", "_a", "A", "Orders", "a-b", "a b", "a.b", "a/b", "..", "a\n", "\0", "ä", "а", "a" * (ASSET_NAME_CHARS_MAX + 1),
    "a'b", 'a"b', "a;drop", "\u0661", "\ud800", "a\u0301",
)  # fmt: skip


@pytest.mark.parametrize("part", GOOD_PARTS)
def test_an_asset_key_reads_back_from_its_spelling(part):
    for key in (AssetKey(part, "x"), AssetKey("x", part)):
        assert AssetKey.parse(key.canonical()) == key
        assert str(key) == key.canonical() == f"{key.namespace}.{key.name}"


@pytest.mark.parametrize("part", BAD_PARTS)
def test_a_part_of_an_asset_key_is_strict(part):
    with pytest.raises(InvalidInput, match="asset namespace"):
        AssetKey(part, "x")
    with pytest.raises(InvalidInput, match="asset name"):
        AssetKey("x", part)


@pytest.mark.parametrize(
    "text", ["", ".", "orders", "a.", ".a", "a.b.c", "a..b", "a b.c", "a.b\n", " a.b", "a,b", "A.b", "x" * 10_000]
)
def test_text_that_is_no_asset_key_is_refused_with_the_way_out(text):
    with pytest.raises(InvalidInput) as caught:
        AssetKey.parse(text)
    assert caught.value.hint != InvalidInput.default_hint
    assert len(caught.value.one_line()) < 300


def test_asset_keys_sort_by_namespace_then_name():
    keys = [AssetKey("b", "a"), AssetKey("a", "c"), AssetKey("a", "b")]
    assert [key.canonical() for key in sorted(keys)] == ["a.b", "a.c", "b.a"]
