"""Names as people write them: what is written can be read back, and what cannot be meant is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco.catalog.spelling import parse_name, parse_namespace, parse_parts, spelled
from arco.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("shop.orders", ("shop", "orders")),
        ("a.b.c", ("a", "b", "c")),
        ('"eu.west".orders', ("eu.west", "orders")),
        ('a."b.c"', ("a", "b.c")),
        ('"say ""hi""".x', ('say "hi"', "x")),
        ('"shop".orders', ("shop", "orders")),
        ("shop.été [1]", ("shop", "été [1]")),
        (" a . b ", (" a ", " b ")),
        ("a.it's", ("a", "it's")),
    ],
)
def test_a_name_is_read(text: str, parts: tuple[str, ...]) -> None:
    assert parse_parts(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", '"a', 'a"b.c', '"a"b.c', '"".a', 'a.""', '"', '"""'])
def test_what_is_no_name_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_parts(text)
    assert "shop.orders" in refused.value.hint


def test_a_table_has_a_namespace() -> None:
    assert parse_name("a.b.c") == (("a", "b"), "c")
    with pytest.raises(InvalidInput, match="has no namespace"):
        parse_name("orders")
    assert parse_namespace("shop") == ("shop",)


def test_names_are_held_to_the_rules_of_names() -> None:
    with pytest.raises(InvalidInput, match="control character"):
        parse_name("a.b\x1fc")
    with pytest.raises(InvalidInput, match="more than 255"):
        parse_namespace("x" * 256)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_whatever_is_spelled_is_read_back(parts: list[str]) -> None:
    assert parse_parts(spelled(tuple(parts))) == tuple(parts)
    assert parse_parts(spelled(tuple(parts), "x")) == (*parts, "x")


def test_quotes_only_where_they_are_needed() -> None:
    assert spelled(("shop",), "orders") == "shop.orders"
    assert spelled(("eu.west",), 'a"b') == '"eu.west"."a""b"'
