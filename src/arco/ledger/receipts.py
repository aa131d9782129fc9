"""The format of receipts: one immutable record per commit of a table, written by the catalog, folded into the ledger.

A receipt's name follows from the commit's number, its metadata location and its time alone. Here is only what is written and how
it is read; when a receipt is written is the catalog's (`catalog/receipts.py`), what becomes of it the fold's.
"""

import hashlib
from enum import StrEnum
from functools import lru_cache

import msgspec

from arco.kernel.clock import in_calendar, utc_date
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import KeyHash
from arco.kernel.limits import DATES_KEPT_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import Day, Phase, ReceiptKey

FORMAT = "arco.receipt"


class SourceKind(StrEnum):
    """What moved a pointer: a client of the catalog, a run, a registration, or upkeep."""

    ICEBERG_REST = "iceberg-rest"
    SERVO = "servo"
    REGISTER = "register"
    UPKEEP = "upkeep"


class Source(msgspec.Struct, frozen=True):
    """Who moved the pointer. `kind` is a `SourceKind`, or what a later version calls its own."""

    kind: str = SourceKind.ICEBERG_REST.value
    principal: str = "anonymous"
    client: str | None = None


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """One commit of the last swing, with everything its receipt says: whoever comes next can write that receipt.

    Commits that became visible together, in one transaction, name it.
    """

    event_id: str
    commit_number: int
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    at_ms: int
    source: Source
    transaction: str | None = None

    def __post_init__(self) -> None:
        """The time comes from a metadata file, where others wrote it: it is told, and named, within the calendar."""
        if self.at_ms != in_calendar(self.at_ms):
            msgspec.structs.force_setattr(self, "at_ms", in_calendar(self.at_ms))


class Receipt(msgspec.Struct, frozen=True):
    """What happened to which table. `format_version` is 1."""

    format: str
    format_version: int
    phase: Phase
    table_uuid: str
    commit_key: str
    commit: Published


def commit_key(metadata_location: str, commit_number: int) -> KeyHash:
    """The number belongs to it: a table may be registered at a file that it had before."""
    return KeyHash(hashlib.sha256(f"{commit_number} {metadata_location}".encode()).hexdigest())


def receipt_name(scope: Scope, phase: Phase, key: KeyHash, at_ms: int) -> str:
    """Where a receipt lies."""
    return str(ReceiptKey(scope, _day(utc_date(in_calendar(at_ms))), phase, key))


@lru_cache(DATES_KEPT_MAX)
def _day(text: str) -> Day:
    return Day(text)


def decode_receipt(data: bytes, key: str) -> Receipt:
    try:
        receipt = msgspec.json.decode(data, type=Receipt)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a receipt: {error}") from error
    if (receipt.format, receipt.format_version) != (FORMAT, 1):
        raise UnknownFormat(f"{key} is {receipt.format!r} version {receipt.format_version}, not {FORMAT!r} version 1")
    return receipt
