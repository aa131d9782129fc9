"""How an event's words become rows: every column there, numbers that fit, orders that grow as text.

One row a call, for the files of `shredding*.py`. A value that no file could hold is refused here, with the event: the model,
Spark and fresh reads then refuse the same events. What must never enter: what an event means.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from arco.fold.vocabulary import BUCKET, Kind, Row, Table, bucket_of
from arco.kernel.errors import InvalidInput
from arco.kernel.identity import partition_id
from arco.kernel.ids import ULID_ALPHABET, AssetId, PartitionId, encode_ulid
from arco.kernel.partition_boxes import need_ranges, partitions_in
from arco.kernel.partition_key import PartitionKey
from arco.ledger.envelope import Event

Contribution: TypeAlias = tuple[Table, Row]
K = TypeVar("K")
V = TypeVar("V")

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
# The first and last moment of the years that every engine can write.
_MOMENT_MIN, _MOMENT_MAX = -62_135_596_800_000, 253_402_300_799_999
_RANGES = {Kind.LONG: (_LONG_MIN, _LONG_MAX), Kind.MOMENT: (_MOMENT_MIN, _MOMENT_MAX)}


def order(*parts: int | str) -> str:
    """A text that compares as its parts do, one after the other. Numbers get leading zeros; texts that are compared are ULIDs.

    Among the last parts are the position and the id of an event, so that two contributions are equal only if they are one.
    """
    return ":".join([part if isinstance(part, str) else _padded(part) for part in parts])


def told(event: Event, *before: int | str) -> str:
    """The order of what an event says, for groups that the first wins: what decides first, then where the event stands.

    Of one event that was delivered twice the first delivery wins; there is nothing to tell the deliveries apart by before that.
    """
    stands = event.position + ":" + event.id
    return f"{order(*before)}:{stands}" if before else stands


def told_at(event: Event, at_ms: int, *before: int | str) -> str:
    """The order of what an event says, for groups that the last wins: what decides first, then when it was so, then the id.

    Never the position: a second delivery has a later one, and would lie over what was said since (docs/adr/0044). `at_ms` and
    what decides before it must be the same in every delivery. At the end, of deliveries of one event the first wins.
    """
    stands = f"{_moment(at_ms)}:{event.id}:{event.position.translate(_BACKWARDS)}"
    return f"{order(*before)}:{stands}" if before else stands


@lru_cache(4096)
def _moment(at_ms: int) -> str:
    """A moment as a ULID begins with it: it compares with positions, which orders of before have in this place."""
    return encode_ulid(min(max(at_ms, 0), _ULID_MS_MAX) << 80)


_ULID_MS_MAX = 2**48 - 1
_BACKWARDS = str.maketrans(ULID_ALPHABET, ULID_ALPHABET[::-1])


def json_text(value: Any) -> str:
    """A document in one spelling."""
    return _encoded(value).decode()


def ranges_text(document: list[dict[str, Any]]) -> str:
    """Ranges of partitions in one spelling. What is no range is the event's fault: readers would trip over it."""
    spelled: bytes = _encoded(document)
    known = _RANGES_KNOWN.get(spelled)
    if known is None:
        need_ranges(document)
        known = spelled.decode()
        if len(spelled) <= _KNOWN_RANGES_BYTES_MAX:
            _remember(_RANGES_KNOWN, spelled, known)
    return known


_encoded = msgspec.json.Encoder(order="sorted").encode


def partitions_of(
    asset_id: str, document: list[dict[str, Any]], grain: dict[str, str]
) -> list[tuple[PartitionId, PartitionKey]]:
    """The partitions that a document names, with their ids."""
    named: bytes = _encoded((document, grain))
    known = _IDS_KNOWN.get((asset_id, named))
    if known is None:
        asset = AssetId(asset_id)
        known = [(partition_id(asset, key), key) for key in _keys_in(named, document, grain)]
        if len(known) <= _KNOWN_PARTITIONS_MAX:
            _remember(_IDS_KNOWN, (asset_id, named), known)
    return known


def _keys_in(named: bytes, document: list[dict[str, Any]], grain: dict[str, str]) -> list[PartitionKey]:
    keys = _KEYS_KNOWN.get(named)
    if keys is None:
        keys = partitions_in(document, grain)
        if len(keys) <= _KNOWN_PARTITIONS_MAX:
            _remember(_KEYS_KNOWN, named, keys)
    return keys


def _remember(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= _KNOWN_MAX:
        known.clear()
    known[key] = value


# Many events of a segment speak of the same days, and a publish and its checks of the same partitions. What was found once is
# only remembered, never changed.
_RANGES_KNOWN: dict[bytes, str] = {}
_KEYS_KNOWN: dict[bytes, list[PartitionKey]] = {}
_IDS_KNOWN: dict[tuple[str, bytes], list[tuple[PartitionId, PartitionKey]]] = {}
_KNOWN_MAX, _KNOWN_PARTITIONS_MAX, _KNOWN_RANGES_BYTES_MAX = 4096, 64, 1024


class RowMaker:
    """Makes the rows of one table. A group that is not named is absent."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._empty = dict.fromkeys(table.column_names)
        numbers = (one for one in table.columns() if one.kind in _RANGES and one.name != BUCKET)
        self._numbers = [(one.name, *_RANGES[one.kind]) for one in numbers]

    def __call__(self, key: Mapping[str, Any], **orders_and_values: Any) -> Contribution:
        """A contribution: the key, the order of each group that it decides, and the values of those groups."""
        row = {**self._empty, **key, **orders_and_values}
        if len(row) != len(self._empty):
            raise KeyError(f"{self.table.name} has no column {sorted(row.keys() - self._empty.keys())}")
        row[BUCKET] = bucket_of(row[self.table.spread_by])
        for name, least, greatest in self._numbers:
            value = row[name]
            if value is not None and not least <= value <= greatest:
                raise InvalidInput(f"{name} is {value}, outside of what a column holds")
        return self.table, row


def _padded(number: int) -> str:
    if not 0 <= number <= _LONG_MAX:
        raise InvalidInput(f"{number} orders nothing: it must lie between 0 and {_LONG_MAX}")
    return f"{number:019}"
