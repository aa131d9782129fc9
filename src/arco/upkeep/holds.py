"""Why what has had its time stays: a snapshot that holds a version of a partition that is to be kept, and the branch of an output
that was held back and waits for somebody to decide.

Only a snapshot that a run published holds a version, and its own summary says so; what rewrites files alone publishes none. What
became of its versions is known from the state, with what is not folded yet. A snapshot that the state does not know of stays; if
the state cannot be read, nothing of such a table expires. A branch needs no state: whoever releases or discards its output takes
it away by the same commit, so one that is there waits.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.ledger.materializations import MATERIALIZATION, is_held_branch
from arco.read.library import Binding, Library
from arco.read.reader import Reader
from arco.read.version_snapshots import VersionsInSnapshot, known_materializations, versions_by_snapshot
from arco.upkeep.sweep import Sweep

_REPLACE = "replace"


def publishes(snapshot: JsonObject) -> bool:
    """Whether a snapshot holds versions of partitions."""
    summary = snapshot.get("summary") or {}
    return MATERIALIZATION in summary and summary.get("operation") != _REPLACE


def why_ref(name: str) -> str | None:
    """Why a ref has to stay, if it has."""
    return "its output was held back, and nobody has decided about it" if is_held_branch(name) else None


@dataclass(frozen=True, slots=True)
class Holds:
    """What is known of the versions of one table."""

    versions: dict[int, VersionsInSnapshot]
    known: set[str]
    """Outputs whose end the state knows. One that published no version of this table was held back, or set rows aside here."""

    def why(self, snapshot: JsonObject) -> str | None:
        """Why a snapshot has to stay, if it has."""
        if not publishes(snapshot):
            return None
        if snapshot["summary"][MATERIALIZATION] not in self.known:
            return "a run published it, and the state does not know of it yet"
        found = self.versions.get(int(snapshot["snapshot-id"]))
        if found is None or not found.kept:
            return None
        more = f" and {found.kept - 1} more" if found.kept > 1 else ""
        which = f"{found.asset} {found.partition_key}".rstrip() if found.partition_key else f"{found.asset}"
        return f"it holds a version that is kept, of {which} ({found.age_days or 0} days old){more}"


class Versions:
    """The versions of all tables, read once a pass and only if some table needs it."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._reader: Reader | None = None
        self._open = ExitStack()

    async def of(self, table: TableMetadata) -> Holds:
        made = {str(one["summary"][MATERIALIZATION]) for one in table.snapshots if publishes(one)}
        if not made:
            return Holds({}, set())
        if self._reader is None:
            self._reader = await self._opened()
        versions = await versions_by_snapshot(self._reader, table.table_uuid, self._sweep.now_ms)
        return Holds(versions, await known_materializations(self._reader, made))

    async def _opened(self) -> Reader:
        # Files of state are fetched to where they are gone when the pass is.
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="arco-upkeep-"))
        library = Library(self._sweep.heads, cache=Path(folder))
        self._open.callback(library.close)
        reader = (await library.open(Binding(fresh=True))).reader
        self._open.callback(reader.close)
        return reader

    def close(self) -> None:
        self._open.close()
