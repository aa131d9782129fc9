"""What a commit of tier 1 says to the ledger: which tables were made, dropped, renamed, restored and described, by whom.

An event's id follows from the commit and its place there, and so does everything else in it: whoever tells it, and however often,
tells the same event. Only what the commit holds is said; the state before it is never looked up, so a commit from long ago
costs no more than the newest. Namespaces, purges, names that are only kept and keys that were
given up say nothing of a table, and are not told.
"""

from collections.abc import Iterator
from typing import Any

from arco.catalog.manifest import Commit
from arco.catalog.model import Entry
from arco.catalog.operations import Confirm, Create, Describe, Drop, Operation, Rename, Undrop
from arco.kernel.ids import EventId
from arco.ledger import catalog_events as said
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.payloads import derived_event_id

_TOLD_FIELDS = frozenset({"owner", "description", "tags", "sensitivity"})

_Told = tuple[EventType, said.NameChange]


class _Telling:
    """The events of one commit, in its order."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._place = -1
        self._author = commit.author

    def events(self) -> Iterator[_Told]:
        for operation, author in self._commit.asked():
            self._author = author.principal
            yield from self._of(operation)

    def _of(self, operation: Operation) -> Iterator[_Told]:
        match operation:
            case Create():
                yield self._created(operation.entry)
            case Confirm():
                yield self._created(operation.reservation.entry)
            case Drop():
                heir = None if operation.successor is None else operation.successor.entry
                # A table that takes its own name again is not gone: it lies elsewhere.
                if heir is None or heir.uuid != operation.uuid:
                    yield (
                        said.TABLE_DROPPED,
                        said.TableDropped(
                            drop_id=operation.drop_id,
                            purge=operation.purge,
                            **self._about(operation.uuid, operation.principal),
                        ),
                    )
                if heir is not None:
                    yield self._created(heir)
            case Undrop():
                yield (
                    said.TABLE_RESTORED,
                    said.TableRestored(
                        namespace=operation.namespace,
                        name=operation.name,
                        drop_id=operation.drop_id,
                        **self._about(operation.uuid),
                    ),
                )
            case Rename():
                yield (
                    said.TABLE_RENAMED,
                    said.TableRenamed(namespace=operation.namespace, name=operation.name, **self._about(operation.uuid)),
                )
            case Describe():
                fields = {name: value for name, value in operation.governance.items() if name in _TOLD_FIELDS}
                if fields:
                    yield said.TABLE_DESCRIBED, said.TableDescribed(fields=fields, **self._about(operation.uuid))
            case _:
                return

    def _created(self, entry: Entry) -> _Told:
        people = entry.governance
        return said.TABLE_CREATED, said.TableCreated(
            asset_id=entry.asset_id,
            kind=entry.kind.value,
            format=entry.format.value,
            namespace=entry.namespace,
            name=entry.name,
            location=entry.location,
            owner=people.owner,
            description=people.description,
            tags=people.tags,
            sensitivity=None if people.sensitivity is None else people.sensitivity.value,
            **self._about(entry.uuid),
        )

    def _about(self, uuid: str, who: str | None = None) -> dict[str, Any]:
        self._place += 1
        return {
            "table_uuid": uuid,
            "commit": self._commit.id,
            "who": self._author if who is None else who,
            "sequence": self._commit.sequence,
            "place": self._place,
        }


def name_events(commit: Commit) -> list[Draft]:
    """The events of a commit, in its order."""
    return [
        Draft(
            type=kind,
            source=said.TIER_1,
            subject=payload.table_uuid,
            id=EventId(derived_event_id(commit.at_ms, "catalog commit", commit.id, str(payload.place))),
            data=payload.data(),
            time_ms=commit.at_ms,
        )
        for kind, payload in _Telling(commit).events()
    ]
