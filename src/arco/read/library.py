"""The door of the room: a reader of the cut that was asked for, with or without what is not folded yet.

Readers of cuts that never change are kept open for a while, because what they hold in memory makes the next question cheap.
A fresh one is made for each question, on the current cut.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from arco.fold.heads import Heads
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.tables import RUNS
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import OPEN_CUTS_MAX
from arco.read.binding import Bindings, Ingestion, need_cut
from arco.read.cut import Cut
from arco.read.files import Files
from arco.read.publishers import BY_SERVO
from arco.read.reader import Reader
from arco.read.tail import Tails


@dataclass(frozen=True, slots=True)
class Binding:
    """Which state a question is about: at most one of these; none of them is the current one."""

    as_of_ms: int | None = None
    as_of_run: str | None = None
    snapshot_id: str | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        given = [one for one in (self.as_of_ms, self.as_of_run, self.snapshot_id) if one is not None]
        if len(given) > 1 or (given and self.fresh):
            raise InvalidInput(
                "a question is about one state",
                hint="give one of as_of, as_of_run and snapshot; fresh goes with none of them",
            )


CURRENT = Binding()


@dataclass(frozen=True, slots=True)
class Opened:
    """A reader, and what whoever reads the answer should know of it."""

    reader: Reader
    warning: str | None = None
    ingestion: Ingestion | None = None
    """How much of the run that was asked for is folded."""


class Library:
    """Everything that is folded in one workspace, open for questions. `receipts` tell fresh reads of commits to tables.

    `files` are those of the store, where several workspaces of it are asked; else they are made of `folder` or `cache`.
    """

    def __init__(
        self,
        heads: Heads,
        *,
        files: Files | None = None,
        folder: Path | None = None,
        cache: Path | None = None,
        receipts: ReceiptEvents | None = None,
    ) -> None:
        self._heads = heads
        self._files = files or Files(heads.store, folder=folder, cache=cache)
        self._bindings = Bindings(heads, lambda cut: Reader(cut, self._files))
        self._tails = Tails(heads, receipts)
        self._open: OrderedDict[str, Reader] = OrderedDict()

    async def open(self, binding: Binding = CURRENT) -> Opened:
        """The state that a binding names. Readers that are not fresh belong to the library: do not close them."""
        if binding.fresh:
            return await self._fresh()
        if binding.as_of_run is not None:
            found = await self._bindings.as_of_run(binding.as_of_run)
            cut = need_cut(binding.as_of_run, found)
            return Opened(self._kept(cut), found.warning, found.ingestion)
        if binding.snapshot_id is not None:
            return Opened(self._kept(await self._bindings.snapshot(binding.snapshot_id)))
        if binding.as_of_ms is not None:
            return Opened(self._kept(await self._bindings.as_of(binding.as_of_ms)))
        return Opened(self._kept(await self._bindings.current()))

    async def oldest_unfolded_ms(self) -> int | None:
        """When the oldest events were written that are not folded yet; None if all are."""
        return await self._tails.oldest_ms((await self._heads.read_root()).manifest)

    def close(self) -> None:
        for reader in self._open.values():
            reader.close()
        self._open.clear()

    async def _fresh(self) -> Opened:
        found = await self._tails.find()
        cut = Cut("", 0) if found.root is None else await self._bindings.cut(found.root)
        before = self._kept(cut)
        # Others may say of any run that it has ended: while Servo does not, its log is read.
        ended = await before.rows(
            f"SELECT run_id FROM {await before.relation(RUNS)} WHERE ended_at IS NOT NULL AND {BY_SERVO}"
        )
        tail = await self._tails.rows(found, told={row["run_id"] for row in ended})
        return Opened(Reader(cut, self._files, tail.rows), _warning(tail.left_out))

    def _kept(self, cut: Cut) -> Reader:
        reader = self._open.get(cut.snapshot_id)
        if reader is None:
            reader = self._open[cut.snapshot_id] = Reader(cut, self._files)
        self._open.move_to_end(cut.snapshot_id)
        while len(self._open) > OPEN_CUTS_MAX:
            # Not closed: it may be answering. It goes when nobody holds it.
            self._open.popitem(last=False)
        return reader


def _warning(left_out: int) -> str | None:
    return f"{left_out} older commits of tables wait for the fold and are not in this answer" if left_out else None
