"""What of the recorded materializations still stands in the table, and who changed the table last.

Events say what was published; the table says what became of it. A table that was dropped and made again has nothing of before.
One that was set back to an earlier snapshot has nothing of what came after it. And the order in which publishes lie over each
other is the table's own: an event that was appended late, by whoever found it in a dead run's log, is no later publish.

Pure, and without PyIceberg.
"""

from collections.abc import Container, Iterable

from arco.iceberg.metadata import MAIN, TableMetadata
from arco.iceberg.shape import JsonObject
from arco.ledger.materializations import MATERIALIZATION
from arco.servo.plan.facts import Materialization

_REPLACE = "replace"  # the operation that rewrites files and changes no row
CONTENT = "arco.content-snapshot-id"
"""The word of a summary that says which snapshot changed rows last, of one that changes none: that one may expire before it."""


def still_standing(made: Iterable[Materialization], table: TableMetadata | None) -> tuple[Materialization, ...]:
    """The materializations that the table still has, in the order in which they lie over each other.

    A snapshot that has expired is taken to be older than every one that is there.
    """
    if table is None:
        return ()
    known = {int(one["snapshot-id"]): int(one.get("sequence-number", 0)) for one in table.snapshots}
    history = {int(one["snapshot-id"]) for one in ancestors(table)}
    oldest = min((known[one] for one in history), default=0)
    kept = []
    for one in made:
        if one.table_uuid and one.table_uuid != table.table_uuid:
            continue
        sequence = -1 if one.snapshot_id is None else known.get(one.snapshot_id, -1)
        if sequence > oldest and one.snapshot_id not in history:
            continue
        kept.append((sequence, one.position, one.id, one))
    return tuple(one for *_, one in sorted(kept, key=lambda found: found[:3]))


def ancestors(table: TableMetadata, ref: str = MAIN) -> list[JsonObject]:
    """The snapshots that lead to a ref, the newest first, as far back as they are kept."""
    by_id = {one["snapshot-id"]: one for one in table.snapshots}
    found = []
    current = table.refs.get(ref, {}).get("snapshot-id")
    while current is not None and current in by_id:
        found.append(by_id.pop(current))  # taken out: a damaged history may go round in a circle
        current = found[-1].get("parent-snapshot-id")
    return found


def has_materialization(table: TableMetadata, materialization_id: str) -> bool:
    """Whether any snapshot, of whatever branch, was made by a materialization."""
    return any(_word(one, MATERIALIZATION) == materialization_id for one in table.snapshots)


def content_snapshot(table: TableMetadata) -> JsonObject | None:
    """The last snapshot that may have changed rows: what only rewrote files is passed over."""
    found = ancestors(table)
    for one in found:
        if _word(one, "operation") != _REPLACE:
            return one
    return found[-1] if found else None


def content_id(table: TableMetadata) -> int | None:
    """Which snapshot may have changed rows last, though it may have expired: rewriting files alone makes no new content."""
    found = ancestors(table)
    for one in found:
        told = _word(one, CONTENT)
        if _word(one, "operation") != _REPLACE:
            return int(one["snapshot-id"])
        if told is not None and told.isdecimal():
            return int(told)
    if not found:
        return None
    parent = found[-1].get("parent-snapshot-id")
    return int(found[-1]["snapshot-id"] if parent is None else parent)


def is_external(table: TableMetadata, own: Container[str]) -> bool:
    """Whether the content was last changed by somebody else: by none of an asset's own materializations.

    Another project may have an asset of the same table; what Servo published for it is no publish of this one.
    """
    last = content_snapshot(table)
    return last is not None and _word(last, MATERIALIZATION) not in own


def _word(snapshot: JsonObject, word: str) -> str | None:
    found = (snapshot.get("summary") or {}).get(word)
    return None if found is None else str(found)
