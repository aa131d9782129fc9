"""Pages of a listing, as they are asked for."""

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LIST_PAGE_KEYS_MAX
from arco.surface.http.exchange import Request
from arco.surface.http.resource import page_of

NAMES = [f"t{number:06}" for number in range(LIST_PAGE_KEYS_MAX + 7)]


def asked(**query: str) -> Request:
    return Request("GET", "/", (), {name: [value] for name, value in query.items()}, {}, b"", "request")


def page(**query: str) -> tuple[list[str], str | None]:
    found, token = page_of(NAMES, asked(**query), str)
    return found, token["next-page-token"]


@pytest.mark.parametrize("size", [LIST_PAGE_KEYS_MAX, LIST_PAGE_KEYS_MAX + 1, 2**63, 10**40])
def test_a_size_is_an_upper_bound_and_no_page_is_larger_than_the_largest(size):
    first, token = page(pageSize=str(size))
    assert first == NAMES[:LIST_PAGE_KEYS_MAX]
    assert page(pageSize=str(size), pageToken=token) == (NAMES[LIST_PAGE_KEYS_MAX:], None)


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5"])
def test_a_page_of_nothing_is_refused(size):
    with pytest.raises(InvalidInput):
        page(pageSize=size)


def test_without_a_size_and_a_token_the_whole_list_is_given():
    assert page_of(NAMES, asked(), str) == (NAMES, {})
