"""What the feed says of a change, in the words of the draft of Iceberg's events: one event a change, those of a request together.

Ids follow from what happened: told twice it would be one event. Tables of other formats are not Iceberg's to tell of. What must
never enter: where an event comes in the feed, and reading files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arco.catalog.manifest import Author, Commit
from arco.catalog.model import Entry, Format, Kind, Levels
from arco.catalog.names import Names
from arco.catalog.operations import (
    ChangeNamespace,
    Create,
    CreateNamespace,
    Drop,
    DropNamespace,
    Operation,
    Rename,
    Undrop,
)
from arco.catalog.past_names import Naming, Past
from arco.ledger.payloads import derived_event_id
from arco.ledger.receipts import Receipt

Document = dict[str, Any]
REGISTERED = "register"
"""The source of a commit that only says where a registered table starts: the name's own change has said so."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a table or view was called at a moment."""

    namespace: Levels
    name: str
    kind: Kind
    uuid: str

    @property
    def identifier(self) -> Document:
        return {"namespace": list(self.namespace), "name": self.name}

    @property
    def about(self) -> Document:
        return {"identifier": self.identifier, f"{self.kind}-uuid": self.uuid}


class Callings:
    """What things are and were called: as tables remember it, or as the chain does for those that do not."""

    def __init__(self, names: Names, pasts: Mapping[str, Past] | None = None) -> None:
        self._names = names
        self._pasts = pasts or {}

    def met_by(self, commit: Commit, uuid: str) -> Called | None:
        """What a commit of tier 1 changes, by the name before it."""
        past = self._pasts.get(uuid)
        return (
            self.at(uuid, commit.at_ms) if past is None else _once_called(uuid, past, past.before_commit(commit.sequence))
        )

    def at(self, uuid: str, at_ms: int) -> Called | None:
        """Before a name changed at this very moment. None for what is not Iceberg's, or long forgotten."""
        past = self._pasts.get(uuid)
        if past is not None:
            return _once_called(uuid, past, past.before(at_ms))
        entry = self._names.identity(uuid)
        if entry is None or entry.format is not Format.ICEBERG:
            return None
        former = next((one for one in entry.former_names if one.until_ms >= at_ms), None)
        return _called(entry) if former is None else Called(former.namespace, former.name, entry.kind, uuid)


def mentioned(items: Iterable[Commit | Sequence[Receipt]]) -> dict[str, int]:
    """The tables that are spoken of by the name of a moment, each with the first such moment."""
    found: dict[str, int] = {}
    for item in items:
        if isinstance(item, Commit):
            said = [(one.uuid, item.at_ms) for one in item.operations if isinstance(one, Drop | Undrop | Rename)]
        else:
            said = [(one.table_uuid, one.commit.at_ms) for one in item if not is_told_by_its_name(one)]
        for uuid, at_ms in said:
            found[uuid] = min(at_ms, found.get(uuid, at_ms))
    return found


def _once_called(uuid: str, past: Past, naming: Naming) -> Called | None:
    return Called(naming.namespace, naming.name, past.kind, uuid) if past.format is Format.ICEBERG else None


def _called(entry: Entry) -> Called:
    return Called(entry.namespace, entry.name, entry.kind, entry.uuid)


# Names


def events_of_names(commit: Commit, callings: Callings) -> list[Document]:
    """The events of a commit of tier 1, in its order."""
    told: list[tuple[str, Author, Document]] = []
    for operation, author in commit.asked():
        told += [(operation.key_hash, author, said) for said in _said(operation, commit, callings)]
    counts: dict[str, int] = {}
    for key_hash, _, _ in told:
        counts[key_hash] = counts.get(key_hash, 0) + 1
    return [
        {
            "event-id": derived_event_id(commit.at_ms, "feed", commit.id, str(place)),
            "request-id": derived_event_id(commit.at_ms, "feed request", commit.id, key_hash),
            "request-event-count": counts[key_hash],
            "timestamp-ms": commit.at_ms,
            "actor": _actor(author.principal, author.client_id),
            "operation": operation,
        }
        for place, (key_hash, author, operation) in enumerate(told)
    ]


def _said(operation: Operation, commit: Commit, callings: Callings) -> Iterator[Document]:
    match operation:
        case CreateNamespace():
            yield _operation("create-namespace", namespace=list(operation.levels), properties=operation.properties)
        case ChangeNamespace():
            removed = list(operation.removals if operation.removed is None else operation.removed)
            updated = list(operation.updates)
            levels = list(operation.levels)
            yield _operation("update-namespace-properties", namespace=levels, updated=updated, removed=removed)
        case DropNamespace():
            yield _operation("drop-namespace", namespace=list(operation.levels))
        case Create():
            yield from _made(operation.entry)
        case Drop():
            called = callings.met_by(commit, operation.uuid)
            heir = None if operation.successor is None else operation.successor.entry
            if called is not None:
                # A purge is of tables alone in Iceberg's words.
                purge = {"purge": operation.purge} if called.kind is Kind.TABLE else {}
                yield _operation(f"drop-{called.kind}", **called.about, **purge)
            if heir is not None:
                yield from _made(heir)
        case Undrop() | Rename():
            yield from _named(operation, commit, callings)
        case _:
            return


def _made(entry: Entry) -> Iterator[Document]:
    if entry.format is not Format.ICEBERG:
        return
    called = _called(entry)
    if entry.start is not None and entry.kind is Kind.TABLE:
        yield _operation("register-table", **called.about)
    else:
        yield _operation(f"create-{entry.kind}", **called.about, updates=[])


def _named(operation: Undrop | Rename, commit: Commit, callings: Callings) -> Iterator[Document]:
    before = callings.met_by(commit, operation.uuid)
    if before is None:
        return
    after = Called(operation.namespace, operation.name, before.kind, before.uuid)
    if isinstance(operation, Rename):
        uuid = {f"{before.kind}-uuid": before.uuid}
        yield _operation(f"rename-{before.kind}", **uuid, source=before.identifier, destination=after.identifier)
    else:
        yield _operation("custom", **{"custom-type": f"x-restore-{before.kind}"}, **after.about)


# Commits


def events_of_commits(
    receipts: Sequence[Receipt], callings: Callings, updates: Mapping[str, list[Document]]
) -> list[Document]:
    """The events of commits that became visible together. `updates` are what each changed, by its key."""
    told = [(one, said) for one in receipts if (said := _committed(one, callings, updates)) is not None]
    return [
        {
            "event-id": _event_id(receipt),
            "request-id": receipt.commit.transaction or _event_id(receipt),
            "request-event-count": len(told),
            "timestamp-ms": receipt.commit.at_ms,
            "actor": _actor(receipt.commit.source.principal, receipt.commit.source.client),
            "operation": said,
        }
        for receipt, said in told
    ]


def is_told_by_its_name(receipt: Receipt) -> bool:
    """Whether a commit is the beginning of what tier 1 says was made."""
    commit = receipt.commit
    return commit.source.kind == REGISTERED or (commit.commit_number == 0 and commit.transaction is None)


def _committed(receipt: Receipt, callings: Callings, updates: Mapping[str, list[Document]]) -> Document | None:
    if is_told_by_its_name(receipt):
        return None
    uuid = receipt.table_uuid
    # What was purged long ago has no name that anybody remembers.
    called = callings.at(uuid, receipt.commit.at_ms) or Called((), uuid, Kind.TABLE, uuid)
    verb = "create" if receipt.commit.commit_number == 0 else "update"
    return _operation(f"{verb}-{called.kind}", **called.about, updates=updates[receipt.commit_key])


def _event_id(receipt: Receipt) -> str:
    """The same as in the ledger."""
    return derived_event_id(receipt.commit.at_ms, "table committed", receipt.table_uuid, receipt.commit_key)


def _actor(principal: str, client: str | None) -> Document:
    return {"principal": principal, **({} if client is None else {"client": client})}


def _operation(kind: str, **fields: Any) -> Document:
    return {"operation-type": kind, **{name.replace("_", "-"): value for name, value in fields.items()}}
