"""The feed of events, looked at again: every page, that no number is missing, and what the checkpoints say of them.

Pages are kept for ever, numbered from 1. They are written in order, so one that is missing below another was there and is gone. A
checkpoint must say of names and tables what the pages up to its number say.
"""

from arco.catalog.feed_pages import Fed, FeedCheckpoint, FeedPage, decode_fed
from arco.kernel.errors import CorruptObject
from arco.storage.keys import FeedCheckpointKey, FeedPageKey, Key
from arco.storage.looking import Judge, Look
from arco.storage.port import Object

_LOST = "restore it from a backup or a copy of the root; whoever reads the feed stops before it"
_DERIVED = "take it away: it is made again from the pages"
_SHOWN_MAX = 20


async def verify_feed(look: Look) -> None:
    feed = _Feed(look)
    kinds: dict[type[Key], Judge] = {FeedCheckpointKey: feed.take_checkpoint}
    await look.each("feed_checkpoint_unreadable", "feed_checkpoints", kinds, "feed", "checkpoints", todo=_DERIVED)
    await look.each("feed_page_unreadable", "feed_pages", {FeedPageKey: feed.take_page}, "feed", "pages", todo=_LOST)
    feed.end()


class _Feed:
    """What the pages add up to, as far as they were looked at. Receipts are not kept: there may be many."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._checkpoints: dict[int, FeedCheckpoint] = {}
        self._fed = Fed()
        self._last = 0
        self._whole = True

    def take_checkpoint(self, key: FeedCheckpointKey, found: Object) -> None:
        kept = decode_fed(found.data, str(key), FeedCheckpoint)
        if kept.number != key.number:
            raise CorruptObject(f"{key} says that it is checkpoint {kept.number}")
        self._checkpoints[kept.number] = kept

    def take_page(self, key: FeedPageKey, found: Object) -> None:
        self._miss(self._last + 1, key.number - 1)
        self._last, self._whole = key.number, self._whole and key.number == self._last + 1
        whole, self._whole = self._whole, False
        page = decode_fed(found.data, str(key), FeedPage)
        if page.number != key.number:
            raise CorruptObject(f"{key} says that it is page {page.number}")
        self._whole = whole
        if whole:
            self._fed.number, self._fed.names = page.number, page.names
            self._fed.tell(page.tables, page.gaps)
            self._compare()

    def end(self) -> None:
        """Checkpoints of pages that are not there, though all before them are."""
        for number in sorted(self._checkpoints):
            if number > self._last and number:
                self._miss(self._last + 1, number)
                self._last = number

    def _compare(self) -> None:
        kept = self._checkpoints.pop(self._fed.number, None)
        told = (self._fed.names, self._fed.tables, self._fed.gaps)
        if kept is not None and (kept.names, kept.tables, kept.gaps) != told:
            name = str(FeedCheckpointKey(self._look.scope, kept.number))
            what = f"{name} does not say what the pages up to {kept.number} say"
            self._look.find("feed_checkpoint_contradicts_pages", name, what, _DERIVED)

    def _miss(self, first: int, last: int) -> None:
        for number in range(first, min(last, first + _SHOWN_MAX - 1) + 1):
            name = str(FeedPageKey(self._look.scope, number))
            self._look.find("feed_page_missing", name, f"page {number} of the feed is missing ({name})", _LOST)
        if last - first >= _SHOWN_MAX:
            self._look.report.note(f"pages {first + _SHOWN_MAX} to {last} of the feed are missing too")
