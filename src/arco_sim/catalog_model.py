"""What a catalog promises, one operation at a time: which names there are, which table each means, and what the table holds.

A table is its identity; what it holds is the label of its last commit, and what people say of it is its owner. Views and tables
of other formats share the names: an operation is about one kind, or about whatever has the name. A commit is two operations
within one interval: the name meant that table at some moment of it, and the table was written at some moment of it. A load sees
both at once.

What must never enter: the product. A model that calls the code under test agrees with its bugs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from arco_sim.linearizability import Operation

ANY, TABLE = "any", "table"
_SEES = frozenset({"load", "list", "resolve", "show"})
_REFUSALS = frozenset({"exists", "missing", "gone", "conflict"})


class CatalogState(NamedTuple):
    """Names with their tables, dropped tables that can be restored, and what every table holds. `kinds`: what is no table.
    `owners`: of whom something was said."""

    names: frozenset[tuple[str, str]] = frozenset()
    dropped: frozenset[str] = frozenset()
    heads: frozenset[tuple[str, str]] = frozenset()
    kinds: frozenset[tuple[str, str]] = frozenset()
    owners: frozenset[tuple[str, str]] = frozenset()

    def table(self, name: str, kind: str = ANY) -> str | None:
        """What has a name, if it is of this kind."""
        found = next((uuid for one, uuid in self.names if one == name), None)
        return found if kind == ANY or found is None or self.kind(found) == kind else None

    def kind(self, uuid: str) -> str:
        return next((kind for one, kind in self.kinds if one == uuid), TABLE)

    def owner(self, uuid: str) -> str | None:
        return next((owner for one, owner in self.owners if one == uuid), None)

    def name(self, uuid: str) -> str | None:
        return next((name for name, one in self.names if one == uuid), None)

    def head(self, uuid: str) -> str | None:
        return next((label for one, label in self.heads if one == uuid), None)

    def bound(self, name: str, uuid: str) -> CatalogState:
        """With a table under a name, and no longer under another, nor among the dropped."""
        others = frozenset(pair for pair in self.names if uuid not in pair and name not in pair)
        return self._replace(names=others | {(name, uuid)}, dropped=self.dropped - {uuid})

    def holding(self, uuid: str, label: str) -> CatalogState:
        return self._replace(heads=frozenset(pair for pair in self.heads if pair[0] != uuid) | {(uuid, label)})

    def of_kind(self, uuid: str, kind: str) -> CatalogState:
        return self if kind == TABLE else self._replace(kinds=self.kinds | {(uuid, kind)})

    def owned(self, uuid: str, owner: str) -> CatalogState:
        return self._replace(owners=frozenset(pair for pair in self.owners if pair[0] != uuid) | {(uuid, owner)})

    def without(self, name: str) -> CatalogState:
        """With whatever has the name among the dropped."""
        gone = self.table(name)
        names = frozenset(pair for pair in self.names if name not in pair)
        return self if gone is None else self._replace(names=names, dropped=self.dropped | {gone})


class CatalogModel:
    """An operation is a verb and a kind, a table's if none is named: `drop view`, `rename any`.

    create, stage, register and overwrite (name, uuid, label), drop name, rename (from, to), undrop (uuid, name) -> "ok", or
    "exists", "missing", "gone", "conflict"; load name -> (uuid, label) or "missing"; list -> the names in order; show
    name -> (uuid, owner) or "missing"; resolve (name, uuid or None) -> "ok"; write and own (uuid, label) -> "ok".
    """

    def __init__(self, first: CatalogState) -> None:
        self._first = first

    def initial(self) -> CatalogState:
        return self._first

    def step(self, state: CatalogState, operation: Operation) -> tuple[CatalogState, ...]:
        after, results = self._apply(state, operation)
        if operation.result == "ok":
            return (after,) if "ok" in results else ()
        return (state,) if operation.result in results else ()

    def step_unknown(self, state: CatalogState, operation: Operation) -> tuple[CatalogState, ...]:
        after, results = self._apply(state, operation)
        return (after,) if "ok" in results else (state,)

    def observes(self, operation: Operation) -> bool:
        return _verb(operation) in _SEES or operation.result in _REFUSALS

    def _apply(self, state: CatalogState, operation: Operation) -> tuple[CatalogState, set[object]]:
        """The state if it is done, and every result that this state can give."""
        kind = _kind(operation)
        match _verb(operation), operation.argument:
            case "create", (str(name), str(uuid), str(label)):
                return _created(state, name, uuid, label, kind)
            case "stage", (str(name), str(uuid), str(label)):
                after, results = _created(state, name, uuid, label, kind)
                # That the name is free is a requirement of its commit.
                return after, results | {"conflict"} if "exists" in results else results
            case "drop", str(name):
                # If the table is replaced in the step in which it would be dropped, its client has to look again.
                there = state.table(name, kind)
                return (state.without(name) if there else state), {"ok" if there else "missing", "conflict"}
            case "rename", (str(source), str(target)):
                return _renamed(state, source, target, kind)
            case "undrop", (str(uuid), str(name)):
                return _restored(state, uuid, name)
            case "register", (str(name), str(uuid), str(label)):
                return _registered(state, name, uuid, label)
            case "overwrite", (str(name), str(uuid), str(label)):
                return _overwritten(state, name, uuid, label)
            case "write", (str(uuid), str(label)):
                return state.holding(uuid, label), {"ok"} if state.name(uuid) else set()
            case "own", (str(uuid), str(label)):
                return state.owned(uuid, label), {"ok"} if state.name(uuid) else set()
            case _:
                return state, {_seen(state, operation)}


def _verb(operation: Operation) -> str:
    return operation.name.partition(" ")[0]


def _kind(operation: Operation) -> str:
    return operation.name.partition(" ")[2] or TABLE


def _seen(state: CatalogState, operation: Operation) -> object:
    kind = _kind(operation)
    match _verb(operation), operation.argument:
        case "load", str(name):
            uuid = state.table(name, kind)
            return "missing" if uuid is None else (uuid, state.head(uuid))
        case "show", str(name):
            uuid = state.table(name)
            return "missing" if uuid is None else (uuid, state.owner(uuid))
        case "list", _:
            return tuple(sorted(name for name, uuid in state.names if state.kind(uuid) == kind))
        case "resolve", (str(name), uuid):
            return "ok" if state.table(name, kind) == uuid else None
        case _:
            raise ValueError(f"a catalog knows no {operation.name}({operation.argument!r})")


def _created(state: CatalogState, name: str, uuid: str, label: str, kind: str) -> tuple[CatalogState, set[object]]:
    if state.table(name) is not None:
        return state, {"exists"}
    return state.bound(name, uuid).holding(uuid, label).of_kind(uuid, kind), {"ok"}


def _renamed(state: CatalogState, source: str, target: str, kind: str) -> tuple[CatalogState, set[object]]:
    uuid = state.table(source, kind)
    if uuid is None:
        return state, {"missing"}
    if state.table(target) is not None:
        return state, {"exists", "conflict"}
    return state.bound(target, uuid), {"ok", "conflict"}


def _restored(state: CatalogState, uuid: str, name: str) -> tuple[CatalogState, set[object]]:
    results: set[object] = set()
    if uuid not in state.dropped:
        results.add("gone")
    if state.table(name) is not None:
        results.add("exists")
    return (state, results) if results else (state.bound(name, uuid), {"ok"})


def _registered(state: CatalogState, name: str, uuid: str, label: str) -> tuple[CatalogState, set[object]]:
    """A table that is dropped or restored while its registration is under way is a conflict, in whatever state it ends."""
    if state.table(name) is not None or state.name(uuid) is not None:
        return state, {"exists", "conflict"}
    return state.bound(name, uuid).holding(uuid, label), {"ok", "conflict"}


def _overwritten(state: CatalogState, name: str, uuid: str, label: str) -> tuple[CatalogState, set[object]]:
    if state.name(uuid) not in (None, name):
        return state, {"exists", "conflict"}
    before = state if state.table(name) == uuid else state.without(name)
    return before.bound(name, uuid).holding(uuid, label), {"ok", "conflict"}
