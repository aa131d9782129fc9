"""Long lists, page by page: a cursor says where the last page ended, in which snapshot, and of which question.

A cursor is opaque to whoever holds it. Within one snapshot pages neither repeat nor skip; a cursor of another snapshot or of
another question is refused, since it would do both.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.answers import Answer
from arco.read.reader import Reader, Rows
from arco.read.views import name

T = TypeVar("T")


class Page(Answer, Generic[T], frozen=True, kw_only=True):
    """Some items of a list, and where the next ones begin; no cursor at its end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


class Window(msgspec.Struct, frozen=True):
    """How much of a list is asked for, and from where on."""

    limit: int = 100
    cursor: str | None = None


FIRST_PAGE = Window()


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    snapshot_id: str
    question: str
    after: tuple[str | int | None, ...]


class Listing(msgspec.Struct, frozen=True):
    """A list in SQL: `select` with the columns of `order` in it, which are texts or whole numbers and together unique."""

    select: str
    order: tuple[str, ...]
    newest_first: bool = False


async def paged(
    reader: Reader, question: Mapping[str, Any], listing: Listing, values: Sequence[Any], window: Window
) -> tuple[Rows, str | None]:
    """The rows of one page, and the cursor of the next. `question` is what was asked: a cursor is good for that alone."""
    if not 1 <= window.limit <= ANSWER_PAGE_ITEMS_MAX:
        raise InvalidInput(f"limit={window.limit} is not between 1 and {ANSWER_PAGE_ITEMS_MAX}")
    asked = fingerprint("question", *(f"{key}={question[key]!r}" for key in sorted(question)))[:16]
    after = None if window.cursor is None else _after(window.cursor, reader.cut.snapshot_id, asked)
    keys = ", ".join(name(key) for key in listing.order)
    beyond = ""
    if after is not None:
        marks = ", ".join("?" for _ in listing.order)
        beyond = f"WHERE ({keys}) {'<' if listing.newest_first else '>'} ({marks})"
    way = " DESC" if listing.newest_first else ""
    order = ", ".join(f"{name(key)}{way}" for key in listing.order)
    sql = f"SELECT * FROM ({listing.select}) {beyond} ORDER BY {order} LIMIT {window.limit + 1}"
    rows = await reader.rows(sql, [*values, *(after or ())])
    if len(rows) <= window.limit:
        return rows, None
    rows = rows[: window.limit]
    last = tuple(rows[-1][key] for key in listing.order)
    return rows, _written(_Cursor(reader.cut.snapshot_id, asked, last))


def snapshot_of(cursor: str) -> str:
    """The snapshot that a cursor belongs to: whoever serves pages opens that one."""
    return _read(cursor).snapshot_id


def _after(cursor: str, snapshot_id: str, asked: str) -> tuple[str | int | None, ...]:
    found = _read(cursor)
    if found.question != asked:
        raise InvalidInput("this cursor belongs to another question", hint="ask as you asked for the first page")
    if found.snapshot_id != snapshot_id:
        raise InvalidInput(
            f"this cursor belongs to snapshot {found.snapshot_id}, not to {snapshot_id}",
            hint="ask for that snapshot, or begin with the first page",
        )
    return found.after


def _written(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _read(cursor: str) -> _Cursor:
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(data, type=_Cursor)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise InvalidInput("this is not a cursor", hint="use next_cursor of the page before, unchanged") from None
