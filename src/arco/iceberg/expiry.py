"""Which snapshots and refs of a table have had their time, by the rules and properties of Iceberg itself.

    refs        main stays; another goes when its snapshot is older than its max-ref-age-ms, if nobody waits for it
    a branch    keeps its newest min-snapshots-to-keep, and those behind them while they are younger than max-snapshot-age-ms
    a tag       keeps its snapshot
    the rest    snapshots that no ref leads to go by the table's own max-snapshot-age-ms

Whoever needs a snapshot longer says why, and it stays: a hold. Pure: from a document and a moment, to updates of a normal commit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from arco.iceberg import changes
from arco.iceberg.metadata import MAIN, TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
MAX_SNAPSHOT_AGE_DEFAULT_MS = 5 * 24 * 3600 * 1000
MIN_SNAPSHOTS_DEFAULT = 1
FOR_EVER_MS = 2**63 - 1

Hold = Callable[[JsonObject], str | None]
"""Why a snapshot has to stay, if it has."""


RefHold = Callable[[str], str | None]
"""Why a ref has to stay, by its name, if it has."""


def no_hold(_: object) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Held:
    """A snapshot that is past its time and stays."""

    snapshot_id: int
    why: str


@dataclass(frozen=True, slots=True)
class HeldRef:
    """A ref that is past its time and stays."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Expiry:
    """What would go of a table. Statistics of a snapshot go with it."""

    snapshots: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
    held_refs: tuple[HeldRef, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.snapshots and not self.refs

    def updates(self) -> tuple[changes.TableUpdate, ...]:
        """Refs first: removing the snapshot of a ref that stays would take the ref with it."""
        refs = tuple(changes.RemoveSnapshotRef(name) for name in self.refs)
        return (*refs, changes.RemoveSnapshots(self.snapshots)) if self.snapshots else refs


def expired(table: TableMetadata, now_ms: int, hold: Hold = no_hold, hold_ref: RefHold = no_hold) -> Expiry:
    """What has had its time at a moment."""
    by_id = {int(one["snapshot-id"]): one for one in table.snapshots}
    past_refs = {name: hold_ref(name) for name, ref in table.refs.items() if not _has_time(name, ref, table, by_id, now_ms)}
    going = {name for name, why in past_refs.items() if why is None}
    refs = {name: ref for name, ref in table.refs.items() if name not in going}
    kept: set[int] = set()
    reached: set[int] = set()
    for ref in refs.values():
        if ref["type"] == "tag":
            kept.add(int(ref["snapshot-id"]))
            reached.add(int(ref["snapshot-id"]))
        else:
            kept |= _kept_by_branch(ref, table, by_id, now_ms)
            reached |= {int(one["snapshot-id"]) for one in _ancestors(ref, by_id)}
    oldest_ms = now_ms - _number(table.properties, MAX_SNAPSHOT_AGE, MAX_SNAPSHOT_AGE_DEFAULT_MS)
    past = [
        one
        for number, one in by_id.items()
        if number not in kept and (number in reached or one["timestamp-ms"] < oldest_ms)
    ]
    reasons = [(int(one["snapshot-id"]), hold(one)) for one in past]
    return Expiry(
        tuple(number for number, why in reasons if why is None),
        tuple(sorted(going)),
        tuple(Held(number, why) for number, why in reasons if why is not None),
        tuple(HeldRef(name, why) for name, why in sorted(past_refs.items()) if why is not None),
    )


def _has_time(name: str, ref: JsonObject, table: TableMetadata, by_id: dict[int, JsonObject], now_ms: int) -> bool:
    if name == MAIN:
        return True
    age_ms = now_ms - int(by_id[int(ref["snapshot-id"])]["timestamp-ms"])
    return age_ms <= int(ref.get("max-ref-age-ms") or _number(table.properties, MAX_REF_AGE, FOR_EVER_MS))


def _kept_by_branch(ref: JsonObject, table: TableMetadata, by_id: dict[int, JsonObject], now_ms: int) -> set[int]:
    properties = table.properties
    at_least = int(ref.get("min-snapshots-to-keep") or _number(properties, MIN_SNAPSHOTS, MIN_SNAPSHOTS_DEFAULT))
    age_ms = ref.get("max-snapshot-age-ms") or _number(properties, MAX_SNAPSHOT_AGE, MAX_SNAPSHOT_AGE_DEFAULT_MS)
    kept: set[int] = set()
    for one in _ancestors(ref, by_id):
        # What a branch points at stays, whatever its numbers say.
        if len(kept) >= max(1, at_least) and one["timestamp-ms"] < now_ms - int(age_ms):
            break
        kept.add(int(one["snapshot-id"]))
    return kept


def _ancestors(ref: JsonObject, by_id: dict[int, JsonObject]) -> Iterator[JsonObject]:
    current, seen = ref["snapshot-id"], set()
    while current in by_id and current not in seen:  # a damaged history may go round in a circle
        seen.add(current)
        yield by_id[current]
        current = by_id[current].get("parent-snapshot-id")


def _number(properties: dict[str, str], key: str, default: int) -> int:
    """A number that somebody set. One that cannot be read is refused: whoever set it meant something else than the default."""
    text = properties.get(key)
    if text is None:
        return default
    if not text.strip().isascii() or not text.strip().isdigit() or len(text.strip()) > 19:
        raise InvalidMetadata(
            f"property {key}: {clip(text)!r} is not a number", hint="nothing of this table expires until it is"
        )
    return int(text)
