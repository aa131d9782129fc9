"""The manifest of the fold: an immutable document that says what one head published, chained to the one before it.

A head names one manifest by its id and the hash of its bytes; the manifest names the one before it in the same way. So whoever
has a head can check every byte below it, and old manifests are the past. A manifest that lost its swing lies beside the chain
and nobody names it: its name is a ULID, so it is in nobody's way.

Beside its predecessor a manifest names, for every power of two, the nearest one before it whose number is divisible by that
power. Finding a moment in a chain of a hundred thousand takes some thirty reads.

What must never enter: reading and writing (`heads.py`), and what rows mean.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from arco.fold.vocabulary import BUCKETS
from arco.fold.work import StateFile
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import content_hash
from arco.kernel.limits import AS_OF_REACH_S, STATE_DELTAS_AGE_S_MAX, STATE_DELTAS_BYTES_MAX, STATE_DELTAS_MAX

FORMAT = "arco.fold_manifest"
ROOT_FORMAT = "arco.fold_root"
FORMAT_VERSION = 1
REBUILD = "restore the object, or rebuild the head from the ledger"


class Made(StrEnum):
    """What made a manifest of a head."""

    FOLD = "fold"
    MERGE = "merge"
    REBUILD = "rebuild"


class Link(msgspec.Struct, frozen=True):
    """One manifest as another names it. `checksum` is the SHA-256 of its bytes."""

    snapshot: str
    checksum: str
    sequence: int
    published_ms: int


class Chained(msgspec.Struct, frozen=True, kw_only=True):
    """What every manifest of a chain says of its place there.

    `earlier[k - 1]` is the nearest manifest before this one whose sequence is divisible by 2 to the power k.
    """

    format: str
    format_version: int = FORMAT_VERSION
    snapshot: str
    sequence: int
    previous: Link | None
    earlier: tuple[Link, ...]
    published_ms: int
    first_published_ms: int
    reach_s: int = AS_OF_REACH_S
    epoch: int

    def link(self, checksum: str) -> Link:
        return Link(self.snapshot, checksum, self.sequence, self.published_ms)

    def oldest_ms(self, now_ms: int) -> int:
        """The oldest moment that can be asked for."""
        return max(self.first_published_ms, now_ms - self.reach_s * 1000)


C = TypeVar("C", bound=Chained)


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one table. Their join is the table. `deltas_since_ms` is when the oldest delta was published."""

    table: str
    base: tuple[StateFile, ...] = ()
    deltas: tuple[StateFile, ...] = ()
    deltas_since_ms: int | None = None

    @property
    def files(self) -> tuple[StateFile, ...]:
        return (*self.base, *self.deltas)


class ListRef(msgspec.Struct, frozen=True, kw_only=True):
    """A list of what was consumed, with the number of names in it."""

    list: str
    checksum: str
    names: int


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Segments of a writer that must have been stored and that no listing shows, by their numbers, both ends included."""

    writer_id: str
    first: int
    last: int


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """When the deltas of a table are merged into its base: any of these is enough."""

    files: int = STATE_DELTAS_MAX
    bytes: int = STATE_DELTAS_BYTES_MAX
    age_s: int = STATE_DELTAS_AGE_S_MAX

    def passed(self, table: TableState, now_ms: int) -> bool:
        if not table.deltas or table.deltas_since_ms is None:
            return False
        size_bytes = sum(file.bytes for file in table.deltas)
        old = now_ms - table.deltas_since_ms >= self.age_s * 1000
        return len(table.deltas) >= self.files or size_bytes >= self.bytes or old


class Sharding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a row is looked for: its bucket is the hash of its table's spreading column, modulo `buckets`."""

    buckets: int = BUCKETS
    hash: str = "crc32"


class Manifest(Chained, frozen=True, kw_only=True):
    """What one head published.

    `events` were folded, `refused` could not be, `set_aside` are of versions that are not known; `beside_plans` are those of the
    two that no plan would stand on, because other systems said them. An event that is stored twice is
    counted twice: counts are for people. `whole` are the tables that every event of the head was folded into: one that Arco got
    later has only what came since, until the head is rebuilt.
    """

    head: str
    made: Made
    tables: tuple[TableState, ...] = ()
    consumed: tuple[ListRef, ...] = ()
    added: str | None = None
    events: int = 0
    refused: int = 0
    set_aside: int = 0
    beside_plans: int = 0
    first_position: str | None = None
    last_position: str | None = None
    gaps: tuple[Gap, ...] = ()
    more_gaps: int = 0
    sharding: Sharding = Sharding()
    caps: Caps = Caps()
    whole: tuple[str, ...] = ()

    def files(self) -> Iterator[StateFile]:
        for table in self.tables:
            yield from table.files

    def table(self, name: str) -> TableState:
        return next((one for one in self.tables if one.table == name), TableState(table=name))


class CutHead(msgspec.Struct, frozen=True, kw_only=True):
    """One head as a cut names it."""

    head: str
    manifest: Link


class RootManifest(Chained, frozen=True, kw_only=True):
    """One cut through all heads: what a reader sees of the catalog as a whole."""

    heads: tuple[CutHead, ...] = ()


class _Header(msgspec.Struct):
    format: str
    format_version: int


class _Numbered(_Header):
    sequence: int


def encode_manifest(manifest: Chained) -> bytes:
    return msgspec.json.encode(manifest, enc_hook=str, order="deterministic")


def decode_manifest(data: bytes, wanted: type[C], link: Link, key: str) -> C:
    """The manifest that a link names, or CorruptObject with the name of the object that is not what was published."""
    if content_hash(data) != link.checksum:
        raise CorruptObject(f"{key} is not what was published: its checksum does not fit", hint=REBUILD)
    known = FORMAT if wanted is Manifest else ROOT_FORMAT
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.format != known:
            raise CorruptObject(f"{key} is {header.format!r}, not {known!r}")
        if header.format_version != FORMAT_VERSION:
            raise UnknownFormat(f"{key} has format version {header.format_version}, not {FORMAT_VERSION}")
        manifest = msgspec.json.decode(data, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a manifest: {error}") from error
    if manifest.link(link.checksum) != link:
        raise CorruptObject(f"{key} says another place in the chain than what names it")
    return manifest


def number_in(data: bytes, key: str) -> int:
    """The number that a manifest of any head says of itself, of which nobody knows the checksum."""
    try:
        found = msgspec.json.decode(data, type=_Numbered)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a manifest: {error}") from error
    if found.format not in {FORMAT, ROOT_FORMAT} or found.format_version != FORMAT_VERSION:
        raise UnknownFormat(f"{key} is {found.format!r} version {found.format_version}, not a manifest that is known")
    return found.sequence


def following(previous: Chained | None, link: Link | None, snapshot: str, now_ms: int, epoch: int) -> dict[str, Any]:
    """The place of the next manifest. Times of a chain never go back, whatever a clock says.

    Where the manifest that counts cannot be read any more, numbers go on and the chain begins anew.
    """
    if previous is None:
        place: dict[str, Any] = {"sequence": link.sequence + 1 if link else 1, "previous": None, "earlier": ()}
        at_ms = max(now_ms, link.published_ms) if link else now_ms
        return place | {"snapshot": snapshot, "published_ms": at_ms, "first_published_ms": at_ms, "epoch": epoch}
    return {
        "snapshot": snapshot,
        "sequence": previous.sequence + 1,
        "previous": link,
        "earlier": _earlier(previous, link),
        "published_ms": max(now_ms, previous.published_ms),
        "first_published_ms": previous.first_published_ms,
        "epoch": epoch,
    }


def _earlier(previous: Chained, link: Link | None) -> tuple[Link, ...]:
    """The far links of the manifest after `previous`: its own, but for the powers that divide its number."""
    if link is None:
        return ()
    found = []
    for power in range(1, previous.sequence.bit_length()):
        if previous.sequence % (1 << power) == 0:
            found.append(link)
        elif power <= len(previous.earlier):
            found.append(previous.earlier[power - 1])
    return tuple(found)
