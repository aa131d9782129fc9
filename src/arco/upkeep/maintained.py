"""Which tables are maintained, and what is done for each: by its own properties, or because somebody asked for it by name.

    maintenance.expire-snapshots.enabled   snapshots expire as history.expire.* says, and then the files that only they named go
    maintenance.orphan-files.enabled       files in the table's own folder that nothing names go
    write.metadata.delete-after-commit.enabled   metadata files that the table's own log no longer names go
    gc.enabled = false                     none of it, whoever asks

They are plain properties of the table, which any client can set: `arco.*` belongs to Arco and no client may.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from arco.catalog.model import Entry, Format, Kind
from arco.catalog.pointer import Pointer
from arco.catalog.standing import in_step
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from arco.storage.cas import Held
from arco.upkeep.sweep import Sweep

EXPIRE_SNAPSHOTS = "maintenance.expire-snapshots.enabled"
ORPHAN_FILES = "maintenance.orphan-files.enabled"
DELETE_METADATA = "write.metadata.delete-after-commit.enabled"
GARBAGE = "gc.enabled"
FORBIDDEN = f"its table says {GARBAGE} = false"


@dataclass(frozen=True, slots=True)
class Maintained:
    """A table, as it was when it was looked at, and what it wants."""

    entry: Entry
    pointer: Held[Pointer]
    metadata: TableMetadata
    asked: bool

    @property
    def name(self) -> str:
        return self.entry.full_name

    def wants(self, word: str) -> bool:
        return self.asked or is_on(self.metadata, word)


def is_on(metadata: TableMetadata, word: str, *, default: str = "false") -> bool:
    return metadata.properties.get(word, default).strip().lower() == "true"


def forbids_garbage(metadata: TableMetadata) -> bool:
    """Whether nothing of a table may go, whoever asks: its files may be those of other tables, too."""
    return not is_on(metadata, GARBAGE, default="true")


async def maintained(sweep: Sweep, *words: str) -> AsyncIterator[Maintained]:
    """Every table that wants one of these, or was asked for. If somebody asked for tables, no others."""
    names = (await sweep.parts.tier1.current()).names
    for entry in list(names.entries.values()):
        asked = entry.uuid in sweep.asked
        if entry.format is not Format.ICEBERG or entry.kind is not Kind.TABLE or (sweep.asked and not asked):
            continue
        one: Maintained | None = None
        with sweep.apart():
            one = await _read(sweep, entry, asked=asked)
        if one is None or not any(one.wants(word) for word in words):
            continue
        sweep.tally.looked_at += 1
        if forbids_garbage(one.metadata):
            sweep.keep(FORBIDDEN)
        else:
            yield one


async def _read(sweep: Sweep, entry: Entry, *, asked: bool) -> Maintained | None:
    pointer = await sweep.parts.pointers.read(entry.uuid)
    if pointer is None or not in_step(entry, pointer):
        return None  # being dropped, restored or registered: whoever meets it finishes that first
    location = pointer.value.metadata_location
    # Remembered, unlike older versions: three jobs of a pass ask for it, and the next pass too if nobody commits.
    return Maintained(entry, pointer, Tables().decode(await sweep.parts.files.read(location), location), asked)
