"""Listing without ever holding more than one page."""

from collections.abc import AsyncIterator

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LIST_PAGE_KEYS_MAX
from arco.storage.port import Listed, ObjectStore


async def walk(store: ObjectStore, prefix: str, after: str = "", page_keys: int = 1000) -> AsyncIterator[Listed]:
    """Every key under a prefix in order, page by page.

    Keys written while the walk is under way are seen if they sort after the place it has reached, as in every store.
    """
    if not 1 <= page_keys <= LIST_PAGE_KEYS_MAX:
        raise InvalidInput(f"a page of {page_keys} keys", hint=f"1 to {LIST_PAGE_KEYS_MAX}")
    while True:
        page = await store.list_page(prefix, after, page_keys)
        for entry in page.entries:
            yield entry
        if page.next_after is None:
            return
        after = page.next_after
