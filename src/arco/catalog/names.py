"""The state of tier 1, and the one function that changes it.

`Names` is the committed state, shared by all readers of a process. A `Draft` lies over it: operations are tried there one by
one, in order, and either all become visible by `merge` after the commit landed, or the draft is thrown away. Work is
proportional to the operations, not to the number of names. No I/O, no clock: the time of a commit comes with it.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from arco.catalog.model import Dropped, Entry, Format, FormerName, Governance, Kind, Levels, Namespace, Reservation, dotted
from arco.catalog.operations import (
    ChangeNamespace,
    Confirm,
    Create,
    CreateNamespace,
    Describe,
    Drop,
    DropNamespace,
    Operation,
    Purge,
    Release,
    Rename,
    Reserve,
    Undrop,
    Void,
)
from arco.kernel.errors import (
    AlreadyExists,
    AskOperator,
    Conflict,
    InvalidInput,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    NotFound,
    RetryLater,
)
from arco.kernel.limits import LISTINGS_REMEMBERED_MAX

K = TypeVar("K")
V = TypeVar("V")

Place = tuple[Levels, str]


class Names:
    """Everything that has a name, as of one commit."""

    def __init__(self) -> None:
        self.namespaces: dict[Levels, Namespace] = {}
        self.entries: dict[Place, Entry] = {}
        self.places: dict[str, Place] = {}
        self.dropped: dict[str, Dropped] = {}
        self.reserved: dict[Place, Reservation] = {}
        self.undecided: dict[Place, AskOperator] = {}
        """Names that transactions keep whose records cannot be read: whether they are taken nobody knows (hazard 9)."""
        self._dropped_at: dict[Place, set[str]] = {}
        self._members: dict[Levels, dict[str, Entry]] = {}
        self._listed: dict[tuple[Levels, Kind], tuple[Entry, ...]] = {}
        self._children: dict[Levels, set[Levels]] = {}

    def namespace(self, levels: Levels) -> Namespace:
        found = self.namespaces.get(levels)
        if found is None:
            raise NoSuchNamespace(f"Namespace does not exist: {dotted(levels)}")
        return found

    def find(self, levels: Levels, name: str, kind: Kind) -> Entry | None:
        """The Iceberg table or view of this name. Tables of other formats do not answer Iceberg's routes."""
        found = self.entry((levels, name))
        return found if found is not None and found.kind is kind and found.format is Format.ICEBERG else None

    def entry(self, place: Place) -> Entry | None:
        """What has this name, of whatever kind and format."""
        found = self.entries.get(place)
        if found is None and place in self.undecided:
            raise self.undecided[place].with_traceback(None)
        return found

    def need_decided(self, is_wanted: Callable[[Entry], bool]) -> None:
        """For who lists names: whether one of those is there must be known."""
        for place, error in self.undecided.items():
            if place in self.reserved and is_wanted(self.reserved[place].entry):
                raise error.with_traceback(None)

    def last_dropped(self, levels: Levels, name: str) -> Dropped | None:
        """What was dropped last under this name and can still be restored."""
        found = (self.dropped[uuid] for uuid in self._dropped_at.get((levels, name), ()))
        return max(found, key=lambda one: (one.dropped_ms, one.drop_id), default=None)

    def by_uuid(self, uuid: str) -> Entry | None:
        place = self.places.get(uuid)
        return None if place is None else self.entries[place]

    def identity(self, uuid: str) -> Entry | None:
        """What has this identity, or had it and can be restored."""
        dropped = self.dropped.get(uuid)
        return self.by_uuid(uuid) if dropped is None else dropped.entry

    def members(self, levels: Levels, kind: Kind) -> tuple[Entry, ...]:
        """The tables or views of a namespace, by name. Remembered until one of them changes: lists are asked page by page."""
        self.namespace(levels)
        self.need_decided(lambda entry: entry.namespace == levels)
        found = self._listed.get((levels, kind))
        if found is None:
            some = self._members.get(levels, {}).values()
            mine = (entry for entry in some if entry.kind is kind and entry.format is Format.ICEBERG)
            found = tuple(sorted(mine, key=lambda entry: entry.name))
            if len(self._listed) >= LISTINGS_REMEMBERED_MAX:
                self._listed.clear()
            self._listed[levels, kind] = found
        return found

    def inhabitants(self, levels: Levels) -> list[Entry]:
        """Everything in a namespace, of every kind and format, by name."""
        self.namespace(levels)
        self.need_decided(lambda entry: entry.namespace == levels)
        return sorted(self._members.get(levels, {}).values(), key=lambda entry: entry.name)

    def children(self, parent: Levels) -> list[Levels]:
        """The namespaces directly inside one, or the outermost."""
        if parent:
            self.namespace(parent)
        return sorted(self._children.get(parent, ()))

    def population(self, levels: Levels) -> int:
        return len(self._members.get(levels, ())) + len(self._children.get(levels, ()))

    # Only `Draft.merge` and loading a checkpoint write; each keeps the indexes in step.

    def put_namespace(self, levels: Levels, namespace: Namespace | None) -> None:
        if namespace is None:
            self.namespaces.pop(levels, None)
            self._children.get(levels[:-1], set()).discard(levels)
        else:
            self.namespaces[levels] = namespace
            self._children.setdefault(levels[:-1], set()).add(levels)

    def put_entry(self, place: Place, entry: Entry | None) -> None:
        for kind in Kind:
            self._listed.pop((place[0], kind), None)
        previous = self.entries.pop(place, None)
        if previous is not None:
            del self._members[place[0]][place[1]]
            if self.places.get(previous.uuid) == place:
                del self.places[previous.uuid]
        if entry is not None:
            self.entries[place] = entry
            self._members.setdefault(place[0], {})[place[1]] = entry
            self.places[entry.uuid] = place

    def put_dropped(self, uuid: str, dropped: Dropped | None) -> None:
        previous = self.dropped.pop(uuid, None)
        if previous is not None:
            self._dropped_at[(previous.entry.namespace, previous.entry.name)].discard(uuid)
        if dropped is not None:
            self.dropped[uuid] = dropped
            self._dropped_at.setdefault((dropped.entry.namespace, dropped.entry.name), set()).add(uuid)

    def put_reserved(self, place: Place, reservation: Reservation | None) -> None:
        self.reserved.pop(place, None)
        self.undecided.pop(place, None)
        if reservation is not None:
            self.reserved[place] = reservation


class _Layer(Generic[K, V]):
    """Changes over a dictionary that stays as it is."""

    def __init__(self, below: dict[K, V]) -> None:
        self._below = below
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        return self.changed[key] if key in self.changed else self._below.get(key)

    def set(self, key: K, value: V | None) -> None:
        self.changed[key] = value

    def values(self) -> Iterator[V]:
        yield from (value for key, value in self._below.items() if key not in self.changed)
        yield from (value for value in self.changed.values() if value is not None)


class Draft:
    """Operations tried over a committed state. `boundary_ms`: creations minted before it are refused."""

    def __init__(self, names: Names, boundary_ms: int = 0) -> None:
        self._names = names
        self._boundary_ms = boundary_ms
        self._namespaces = _Layer(names.namespaces)
        self._entries = _Layer(names.entries)
        self._places = _Layer(names.places)
        self._dropped = _Layer(names.dropped)
        self._reserved = _Layer(names.reserved)
        self._growth: dict[Levels, int] = {}

    def apply(self, operation: Operation, at_ms: int) -> Operation:
        """Try one operation: as it is to be recorded, with what came of it. An error leaves the draft as it was."""
        match operation:
            case CreateNamespace():
                self._create_namespace(operation, at_ms)
            case DropNamespace():
                self._drop_namespace(operation)
            case ChangeNamespace():
                return self._change_namespace(operation, at_ms)
            case Create():
                self._create(operation)
            case Drop():
                self._drop(operation, at_ms)
            case Undrop():
                self._undrop(operation, at_ms)
            case Rename():
                self._rename(operation, at_ms)
            case Describe():
                self._describe(operation, at_ms)
            case Purge():
                self._purge(operation)
            case Reserve() | Confirm() | Release():
                self._keep(operation)
            case Void():
                pass
        return operation

    def entries(self) -> Iterator[Entry]:
        return self._entries.values()

    def dropped(self) -> Iterator[Dropped]:
        return self._dropped.values()

    def reserved(self) -> Iterator[Reservation]:
        return self._reserved.values()

    def merge(self) -> None:
        """Make everything that was tried the committed state."""
        for levels, namespace in self._namespaces.changed.items():
            self._names.put_namespace(levels, namespace)
        removed_first = sorted(self._entries.changed.items(), key=lambda change: change[1] is not None)
        for place, entry in removed_first:
            self._names.put_entry(place, entry)
        for uuid, dropped in self._dropped.changed.items():
            self._names.put_dropped(uuid, dropped)
        for place, reservation in self._reserved.changed.items():
            self._names.put_reserved(place, reservation)

    def changes(self) -> Iterator[tuple[str, str, msgspec.Struct | None]]:
        """What was changed, as (kind, key, document or None), for a checkpoint."""
        for levels, namespace in self._namespaces.changed.items():
            yield "namespace", encode_levels(levels), namespace
        for (levels, name), entry in self._entries.changed.items():
            yield "entry", encode_levels((*levels, name)), entry
        for uuid, dropped in self._dropped.changed.items():
            yield "dropped", uuid, dropped
        for (levels, name), reservation in self._reserved.changed.items():
            yield "reserved", encode_levels((*levels, name)), reservation

    # Namespaces

    def _create_namespace(self, operation: CreateNamespace, at_ms: int) -> None:
        levels = operation.levels
        if self._namespaces.get(levels) is not None:
            raise AlreadyExists(f"Namespace already exists: {dotted(levels)}")
        if levels[:-1]:
            self._need_namespace(levels[:-1])
        self._namespaces.set(levels, Namespace(operation.id, levels, operation.properties, at_ms, at_ms))
        self._grow(levels[:-1], 1)

    def _drop_namespace(self, operation: DropNamespace) -> None:
        levels = operation.levels
        self._need_namespace(levels)
        if self._names.population(levels) + self._growth.get(levels, 0):
            raise NamespaceNotEmpty(f"Namespace {dotted(levels)} is not empty.")
        for place in {*self._names.reserved, *self._reserved.changed}:
            if place[0] == levels:
                self._need_unreserved(*place)
        self._namespaces.set(levels, None)
        self._grow(levels[:-1], -1)

    def _change_namespace(self, operation: ChangeNamespace, at_ms: int) -> ChangeNamespace:
        namespace = self._need_namespace(operation.levels)
        removed = tuple(one for one in operation.removals if one in namespace.properties)
        kept = {key: value for key, value in namespace.properties.items() if key not in operation.removals}
        changed = msgspec.structs.replace(namespace, properties=kept | operation.updates, updated_ms=at_ms)
        self._namespaces.set(operation.levels, changed)
        return msgspec.structs.replace(operation, removed=removed)

    # Tables and views

    def _create(self, operation: Create) -> None:
        entry = operation.entry
        if operation.minted_ms < self._boundary_ms:
            raise Conflict("this creation was begun before the last clean-up", hint="create it again")
        self._need_namespace(entry.namespace)
        self._need_free(entry.namespace, entry.name, entry.kind)
        self._need_identity(operation)
        self._dropped.set(entry.uuid, None)
        self._place(entry)

    def _drop(self, operation: Drop, at_ms: int) -> None:
        entry = self._need_binding(operation.uuid, operation.binding)
        successor = operation.successor
        if successor is not None:
            self._need_heir(entry, successor)
        self._displace(entry)
        if successor is None or successor.entry.uuid != entry.uuid:
            who, drop_id = operation.principal, operation.drop_id
            dropped = Dropped(entry, drop_id, operation.purge, who, at_ms, operation.unregistered)
            self._dropped.set(entry.uuid, dropped)
        if successor is not None:
            if successor.entry.uuid != entry.uuid:
                self._dropped.set(successor.entry.uuid, None)
            self._place(successor.entry)

    def _undrop(self, operation: Undrop, at_ms: int) -> None:
        dropped = self._need_dropped(operation.uuid, operation.drop_id)
        entry = dropped.entry
        self._need_namespace(operation.namespace)
        self._need_free(operation.namespace, operation.name, entry.kind)
        self._dropped.set(entry.uuid, None)
        restored = msgspec.structs.replace(entry, start=None)
        self._place(_moved(restored, operation.namespace, operation.name, at_ms))

    def _rename(self, operation: Rename, at_ms: int) -> None:
        entry = self._need_binding(operation.uuid, operation.binding)
        self._need_namespace(operation.namespace)
        self._need_unreserved(operation.namespace, operation.name)
        taken = self._entries.get((operation.namespace, operation.name))
        if taken is not None:
            to, what = dotted(operation.namespace, operation.name), taken.kind.capitalize()
            raise AlreadyExists(f"Cannot rename {entry.full_name} to {to}. {what} already exists")
        self._displace(entry)
        self._place(_moved(entry, operation.namespace, operation.name, at_ms))

    def _describe(self, operation: Describe, at_ms: int) -> None:
        place = self._places.get(operation.uuid)
        entry = None if place is None else self._entries.get(place)
        if entry is None or place is None:
            raise NoSuchTable(f"Table does not exist: {operation.uuid}")
        try:
            fields = msgspec.structs.asdict(entry.governance) | operation.governance
            governance = msgspec.convert(msgspec.to_builtins(fields), Governance)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"these governance fields do not fit: {error}") from error
        kept = {key: value for key, value in entry.properties.items() if key not in operation.property_removals}
        self._entries.set(
            place,
            msgspec.structs.replace(
                entry,
                governance=governance,
                properties=kept | operation.property_updates,
                columns=entry.columns if operation.columns is None else operation.columns,
                updated_ms=at_ms,
            ),
        )

    def _purge(self, operation: Purge) -> None:
        self._need_dropped(operation.uuid, operation.drop_id)
        self._dropped.set(operation.uuid, None)

    # Names that transactions keep

    def _keep(self, operation: Reserve | Confirm | Release) -> None:
        match operation:
            case Reserve():
                self._reserve(operation)
            case Confirm():
                self._reserved.set(self._need_reserved(operation.reservation), None)
                self._place(operation.reservation.entry)
            case Release():
                self._reserved.set(self._need_reserved(operation.reservation), None)

    def _reserve(self, operation: Reserve) -> None:
        wanted = operation.reservation
        entry, place = wanted.entry, (wanted.entry.namespace, wanted.entry.name)
        if operation.minted_ms < self._boundary_ms:
            raise Conflict("this creation was begun before the last clean-up", hint="create it again")
        self._need_namespace(entry.namespace)
        there = self._reserved.get(place)
        if there is None or there.tx_id != wanted.tx_id or there.attempt > wanted.attempt:
            self._need_unreserved(*place)
        self._need_untaken(*place, entry.kind)
        self._need_new(entry)
        self._reserved.set(place, wanted)

    def _need_reserved(self, reservation: Reservation) -> Place:
        place = (reservation.entry.namespace, reservation.entry.name)
        if self._reserved.get(place) != reservation:
            raise Conflict(f"{dotted(*place)} is no longer reserved for this attempt")
        return place

    def _need_unreserved(self, levels: Levels, name: str) -> None:
        """Whether the name is taken is for its transaction to decide."""
        there = self._reserved.get((levels, name))
        if there is not None:
            self._names.entry((levels, name))
            raise RetryLater(f"transaction {there.tx_id} is about to create {dotted(levels, name)}")

    def _need_unreserved_identity(self, entry: Entry) -> None:
        """One identity, one name: a transaction that keeps another name for it may be committed yet."""
        for place in {*self._names.reserved, *self._reserved.changed}:
            there = self._reserved.get(place)
            if there is not None and there.entry.uuid == entry.uuid and place != (entry.namespace, entry.name):
                self._names.entry(place)
                raise RetryLater(f"transaction {there.tx_id} is about to create {entry.uuid} as {dotted(*place)}")

    def _need_new(self, entry: Entry) -> None:
        self._need_unnamed(entry)
        dropped = self._dropped.get(entry.uuid)
        if dropped is not None:
            raise AlreadyExists(f"A dropped table has the same identity: {dropped.entry.full_name}")

    def _need_unnamed(self, entry: Entry) -> None:
        self._need_unreserved_identity(entry)
        holder = self._places.get(entry.uuid)
        if holder is not None:
            raise AlreadyExists(f"Table already exists with the same identity: {dotted(*holder)}")

    # What must be there, and what must not

    def _need_namespace(self, levels: Levels) -> Namespace:
        found = self._namespaces.get(levels)
        if found is None:
            raise NoSuchNamespace(f"Namespace does not exist: {dotted(levels)}")
        return found

    def _need_free(self, levels: Levels, name: str, kind: Kind) -> None:
        self._need_unreserved(levels, name)
        self._need_untaken(levels, name, kind)

    def _need_untaken(self, levels: Levels, name: str, kind: Kind) -> None:
        taken = self._entries.get((levels, name))
        if taken is None:
            return
        full, what = dotted(levels, name), taken.kind.capitalize()
        same = "" if taken.kind is kind else " with same name"
        raise AlreadyExists(f"{what}{same} already exists: {full}")

    def _need_identity(self, operation: Create) -> None:
        """An identity that nothing has; or that of a dropped table, if this creation is meant to revive exactly it."""
        entry = operation.entry
        self._need_unnamed(entry)
        dropped = self._dropped.get(entry.uuid)
        if (None if dropped is None else dropped.drop_id) != operation.revives:
            raise Conflict("a table with this identity was dropped or restored meanwhile")
        if dropped is not None and entry.binding != dropped.entry.binding + 1:
            raise Conflict("a table with this identity was bound anew meanwhile")

    def _need_heir(self, entry: Entry, successor: Create) -> None:
        """What takes a name in the step that drops its holder: the same table at another place, or another table."""
        heir = successor.entry
        if (heir.namespace, heir.name) != (entry.namespace, entry.name):
            raise Conflict("the table was renamed meanwhile")
        if heir.uuid != entry.uuid:
            self._need_identity(successor)
        elif heir.binding != entry.binding + 1:
            raise Conflict("the table was bound anew meanwhile")

    def _need_binding(self, uuid: str, binding: int) -> Entry:
        place = self._places.get(uuid)
        entry = None if place is None else self._entries.get(place)
        if entry is None or entry.binding != binding:
            raise NoSuchTable(f"Table does not exist: {uuid}", hint="it was renamed, dropped or restored meanwhile")
        return entry

    def _need_dropped(self, uuid: str, drop_id: str) -> Dropped:
        found = self._dropped.get(uuid)
        if found is None or found.drop_id != drop_id:
            raise NotFound(f"{uuid} is not among the dropped tables", hint="it was restored or purged meanwhile")
        return found

    def _place(self, entry: Entry) -> None:
        place = (entry.namespace, entry.name)
        self._entries.set(place, entry)
        self._places.set(entry.uuid, place)
        self._grow(entry.namespace, 1)

    def _displace(self, entry: Entry) -> None:
        self._entries.set((entry.namespace, entry.name), None)
        self._places.set(entry.uuid, None)
        self._grow(entry.namespace, -1)

    def _grow(self, levels: Levels, by: int) -> None:
        self._growth[levels] = self._growth.get(levels, 0) + by


def missing(levels: Levels, name: str, kind: Kind) -> NotFound:
    """The error for a name that nothing has."""
    full = dotted(levels, name)
    return NoSuchView(f"View does not exist: {full}") if kind is Kind.VIEW else NoSuchTable(f"Table does not exist: {full}")


def encode_levels(levels: Levels) -> str:
    """Levels as one text that no two lists share: JSON."""
    return msgspec.json.encode(levels).decode()


def _moved(entry: Entry, namespace: Levels, name: str, at_ms: int) -> Entry:
    """The same thing under another name; its binding tells drops and commits of the old name that it moved."""
    moves = (entry.namespace, entry.name) != (namespace, name)
    former = (FormerName(entry.namespace, entry.name, at_ms),) if moves else ()
    return msgspec.structs.replace(
        entry,
        namespace=namespace,
        name=name,
        binding=entry.binding + 1,
        updated_ms=at_ms,
        former_names=(*entry.former_names, *former),
    )
