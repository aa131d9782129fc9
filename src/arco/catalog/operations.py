"""The operations of tier 1, as data. A commit is a list of them; state is what they add up to.

Each carries the hash of the idempotency key it came with: whoever rebases a commit leaves out what is already in the chain
under the same key, so that a retried drop cannot drop the table that was created after it.
"""

from typing import Any

import msgspec

from arco.catalog.model import ColumnNote, Entry, Levels, Reservation


class _Operation(msgspec.Struct, frozen=True, tag_field="op", kw_only=True):
    key_hash: str


class CreateNamespace(_Operation, frozen=True, tag="create_namespace"):
    id: str
    levels: Levels
    properties: dict[str, str]


class DropNamespace(_Operation, frozen=True, tag="drop_namespace"):
    levels: Levels


class ChangeNamespace(_Operation, frozen=True, tag="change_namespace", omit_defaults=True):
    """`removed` are those of the removals that were there. Whoever applies it says so, of the state that it is applied to."""

    levels: Levels
    removals: tuple[str, ...]
    updates: dict[str, str]
    removed: tuple[str, ...] | None = None


class Create(_Operation, frozen=True, tag="create"):
    """A table or view becomes visible. `minted_ms` is when its identity was made, for the collector's boundary.

    `revives` names the drop of the same identity that this creation undoes: a dropped table that is registered again.
    """

    entry: Entry
    minted_ms: int
    revives: str | None = None


class Drop(_Operation, frozen=True, tag="drop"):
    """Matches the identity and the binding, never the name. `successor` takes the name in the same step.

    `unregistered`: the table goes on elsewhere, and its files are not Arco's any more.
    """

    uuid: str
    binding: int
    drop_id: str
    purge: bool
    principal: str
    successor: Create | None = None
    unregistered: bool = False


class Undrop(_Operation, frozen=True, tag="undrop"):
    uuid: str
    drop_id: str
    namespace: Levels
    name: str


class Rename(_Operation, frozen=True, tag="rename"):
    uuid: str
    binding: int
    namespace: Levels
    name: str


class Describe(_Operation, frozen=True, tag="describe"):
    """New governance fields, properties and columns of a table; what is given replaces the old."""

    uuid: str
    governance: dict[str, Any]
    property_removals: tuple[str, ...] = ()
    property_updates: dict[str, str] = {}
    columns: tuple[ColumnNote, ...] | None = None


class Purge(_Operation, frozen=True, tag="purge"):
    """A dropped entry can no longer be restored."""

    uuid: str
    drop_id: str


class Reserve(_Operation, frozen=True, tag="reserve"):
    """A transaction keeps a name for a table that it creates. Nobody sees it before its record says that it was committed."""

    reservation: Reservation
    minted_ms: int


class Confirm(_Operation, frozen=True, tag="confirm"):
    """A reserved name becomes what it was reserved for: its transaction was committed."""

    reservation: Reservation


class Release(_Operation, frozen=True, tag="release"):
    """A reserved name is free again: that attempt of its transaction came to nothing."""

    reservation: Reservation


class Void(_Operation, frozen=True, tag="void"):
    """Nothing. A key that is in the chain with it was refused: whoever still works on it stops, and nobody finishes it."""


Operation = (
    CreateNamespace
    | DropNamespace
    | ChangeNamespace
    | Create
    | Drop
    | Undrop
    | Rename
    | Describe
    | Purge
    | Reserve
    | Confirm
    | Release
    | Void
)
