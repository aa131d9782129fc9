"""One list of a metadata document whose entries have ids: schemas, partition specs, sort orders, view versions.

An entry is found by its id and by its meaning: adding what is already there gives the id it has, so that repeated
evolution does not grow the document. What must never enter: what the entries say.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from arco.iceberg.shape import LAST_ADDED, JsonObject
from arco.kernel.errors import InvalidMetadata

_ID_MAX = 2**31 - 1


@dataclass(slots=True)
class Numbered:
    """A draft of one list. `entries` is owned by the draft and grows in place; the entries themselves are never changed."""

    what: str
    id_key: str
    entries: list[JsonObject]
    meaning: Callable[[JsonObject], bytes]
    first_id: int = 0
    last_added: int | None = None
    added: set[int] = field(default_factory=set)
    _by_id: dict[int, JsonObject] | None = None
    _by_meaning: dict[bytes, int] | None = None

    def get(self, entry_id: int) -> JsonObject | None:
        return self._ids().get(entry_id)

    def resolve(self, entry_id: int) -> int:
        """The id meant by a request: -1 is the entry added last in it."""
        if entry_id == LAST_ADDED:
            if self.last_added is None:
                raise InvalidMetadata(f"Cannot set last added {self.what}: no {self.what} has been added")
            return self.last_added
        if entry_id not in self._ids():
            raise InvalidMetadata(f"{self.what} {entry_id} does not exist")
        return entry_id

    def add(self, entry: JsonObject, *, keep_id: bool) -> int:
        """The id of the entry, old or new. `keep_id`: a chosen id above all others stays, because nothing knows another."""
        meaning = self.meaning(entry)
        by_meaning = self._meanings()
        known = by_meaning.get(meaning)
        if known is None:
            known = self._next_id(entry.get(self.id_key), keep_id=keep_id)
            self._append({**entry, self.id_key: known})
            by_meaning[meaning] = known
        self.last_added = known
        return known

    def add_as(self, entry: JsonObject, entry_id: int) -> int:
        """Add under a reserved id, unless that id is there already."""
        if entry_id not in self._ids():
            self._append({**entry, self.id_key: entry_id})
            if self._by_meaning is not None:
                self._by_meaning.setdefault(self.meaning(entry), entry_id)
        self.last_added = entry_id
        return entry_id

    def remove(self, entry_ids: set[int]) -> None:
        """Forget entries; what is not there needs no forgetting."""
        self.entries[:] = [entry for entry in self.entries if entry[self.id_key] not in entry_ids]
        self._by_id = self._by_meaning = None

    def _next_id(self, chosen: int | None, *, keep_id: bool) -> int:
        free = max(self._ids(), default=self.first_id - 1) + 1
        if keep_id and chosen is not None and chosen > free:
            return chosen
        if free > _ID_MAX:
            raise InvalidMetadata(f"{self.what}: no id is left")
        return max(free, self.first_id)

    def _append(self, entry: JsonObject) -> None:
        entry_id = entry[self.id_key]
        self._ids()[entry_id] = entry
        self.entries.append(entry)
        self.added.add(entry_id)

    def _ids(self) -> dict[int, JsonObject]:
        if self._by_id is None:
            self._by_id = {entry[self.id_key]: entry for entry in self.entries}
        return self._by_id

    def _meanings(self) -> dict[bytes, int]:
        if self._by_meaning is None:
            # From the end, so that of two equal entries the older one is found.
            pairs = ((self._meaning_of_old(entry), entry[self.id_key]) for entry in reversed(self.entries))
            self._by_meaning = {meaning: entry_id for meaning, entry_id in pairs if meaning is not None}
        return self._by_meaning

    def _meaning_of_old(self, entry: JsonObject) -> bytes | None:
        # An old entry of a foreign table may be beyond reading: then it equals nothing that is added.
        try:
            return self.meaning(entry)
        except (KeyError, TypeError, AttributeError):
            return None
