"""The state that a command asks: opened for the length of one question, and said where there is none yet.

What must never enter: the questions, and how answers are printed.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from arco.fold.heads import Heads
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.read.library import Binding, Library
from arco.read.reader import Reader
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import say_aside
from arco.surface.receipts import receipts_of


@dataclass(frozen=True, slots=True)
class Asked:
    """An open state. `now_ms` is the time that health is judged at: today's for today's state, the past's for the past."""

    heads: Heads
    library: Library
    binding: Binding
    reader: Reader
    now_ms: int
    place: str

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever folded here, and nothing else was asked for."""
        return not self.reader.cut.snapshot_id and not self.binding.fresh

    def need_state(self) -> None:
        """For questions about something by its name: without any state the answer is not "no such thing"."""
        if self.is_empty:
            raise NotFound(f"nothing is folded yet in {self.place}", hint=_WAY_OUT)

    def say_if_empty(self) -> None:
        """For lists: they are empty, and here is why."""
        if self.is_empty:
            say_aside(f"arco: nothing is folded yet in {self.place}; {_WAY_OUT}")


_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_WAY_OUT = "`arco fold` does it, and --fresh asks without it"


@asynccontextmanager
async def asking(where: Where, binding: Binding) -> AsyncIterator[Asked]:
    """The state that a binding names, in the workspace that a command is about."""
    async with opened(where) as at:
        parts = at.catalog.parts
        heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        library = Library(heads, folder=at.folder, receipts=receipts_of(parts))
        try:
            found = await library.open(binding)
            if found.warning is not None:
                say_aside(f"arco: {found.warning}")
            now_ms = _judged_at(binding, found.reader, parts.clock.now_ms())
            try:
                yield Asked(heads, library, binding, found.reader, now_ms, f"{at.warehouse} of {at.root}")
            finally:
                found.reader.close()
        finally:
            library.close()


def bound(as_of: str | None, as_of_run: str | None, snapshot: str | None, *, fresh: bool) -> Binding:
    """The binding that the flags name."""
    return Binding(moment(as_of), as_of_run, snapshot, fresh)


def state_named(word: str) -> Binding:
    """The state that a word names: a snapshot by its id, or that of a time."""
    return Binding(snapshot_id=word) if is_snapshot(word) else Binding(as_of_ms=moment(word))


def is_snapshot(word: str) -> bool:
    return _ULID.fullmatch(word) is not None


def moment(text: str | None) -> int | None:
    """A time as people write it, in milliseconds; UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{clip(text)!r} is no time", hint="write it as ISO 8601, such as 2025-01-31T12:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _judged_at(binding: Binding, reader: Reader, now_ms: int) -> int:
    if binding.as_of_ms is not None:
        return binding.as_of_ms
    return reader.cut.published_ms if binding.snapshot_id or binding.as_of_run else now_ms
