"""What people hold back by hand, whatever checks said. Of each partition the last word counts.

A word may be about one version of a partition; it ends with that version, and says nothing of the others: for a version the
last of the words about it and of those about all versions counts. A release need not name the same partitions as what it
releases. What must never enter: what gates hold back, which is never published at all.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import QUARANTINES
from arco.read.answers import document, shaped
from arco.read.boxes import holds
from arco.read.reader import Reader, Rows


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said of some partitions: held back, or let go again."""

    asset_id: str
    partitions: list[dict[str, Any]]
    quarantined: bool
    who: str | None
    why: str | None
    materialization_id: str | None
    """The version that is meant; None: all of them."""
    said_at: datetime | None

    def is_about(self, key: str, materialization_id: str | None) -> bool:
        return self.materialization_id in {None, materialization_id} and holds(self.partitions, key)


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """Current partitions that are held back by one word, by their keys."""

    who: str
    why: str
    said_at: datetime | None
    partitions: tuple[str, ...]


async def words_about(reader: Reader, asset_ids: Collection[str]) -> dict[str, list[Word]]:
    """What was said of some assets, newest first. Most have none, and cost nothing."""
    if not reader.may_have(QUARANTINES, asset_ids):
        return {}
    relation = await reader.relation(QUARANTINES, asset_ids)
    found: dict[str, list[Word]] = {}
    for row in await reader.rows(f"SELECT * FROM {relation} ORDER BY said_at DESC, said_order DESC"):
        meant = {"partitions": document(row["partitions"]) or [], "materialization_id": row["materialization_id"] or None}
        word = shaped(Word, row, quarantined=bool(row["quarantined"]), **meant)
        found.setdefault(word.asset_id, []).append(word)
    return found


def standing(words: Iterable[Word], current: Rows) -> tuple[Quarantine, ...]:
    """What is held back of the current partitions of one asset. `words` are newest first."""
    said, held = list(words), dict[int, list[str]]()
    for row in current:
        key = row["partition_key"] or ""
        last = next((place for place, one in enumerate(said) if one.is_about(key, row["materialization_id"])), None)
        if last is not None and said[last].quarantined:
            held.setdefault(last, []).append(key)
    return tuple(
        Quarantine(
            who=said[place].who or "",
            why=said[place].why or "",
            said_at=said[place].said_at,
            partitions=tuple(sorted(keys)),
        )
        for place, keys in held.items()
    )
