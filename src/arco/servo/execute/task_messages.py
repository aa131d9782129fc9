"""What a worker and the process of one task say to each other over pipes: typed, versioned, in JSON, each with its length first.

    worker   Begin                    Store
    process         Said… Progress… Made        Said… Progress… Files   (or Failed, at any time)

The process runs an asset's code, which can write to the pipe whatever it likes. So nothing here is code, nothing is unpickled,
everything has a bound, and what it means is judged elsewhere (`believing.py`). What must never enter: keys that open more than
the task's own places.
"""

import asyncio
from typing import Any

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import TASK_MESSAGE_BYTES_MAX
from arco.ledger.run_entries import Failure
from arco.servo.plan.document import PlannedTask
from arco.servo.plan.facts import AssetFacts

FORMAT = 1
_LENGTH_BYTES = 4


class ProjectSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a project's code is, as its file says."""

    folder: str
    name: str
    namespace: str
    assets: tuple[str, ...]
    gate: str = "strict"


class SparkPart(msgspec.Struct, frozen=True, kw_only=True):
    """The Spark that a task is computed on. `log_file` gets Spark's own words."""

    master: str
    name: str
    conf: dict[str, str]
    jars_folder: str | None
    log_file: str


class PinnedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is read: the snapshot, and the metadata that has it; None if there is none."""

    snapshot_id: int | None
    table: dict[str, Any] | None


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """Everything that computing one attempt takes. `options` are the store's, with keys for this attempt alone."""

    format: int
    project: ProjectSource
    code_version: str
    spark: SparkPart
    root: str
    options: dict[str, str]
    parameters: dict[str, str]
    at_ms: int
    facts: dict[str, AssetFacts]
    run: str
    task: PlannedTask
    attempt: int
    materialization: str
    tables: dict[str, PinnedTable]


class Store(msgspec.Struct, frozen=True, kw_only=True, tag="store"):
    """Where to write: metadata of the table as its new files are written, and of the one for rows that are set aside."""

    table: dict[str, Any]
    aside: dict[str, Any] | None


class Said(msgspec.Struct, frozen=True, tag="said"):
    """A line for the attempt's log."""

    level: str
    text: str


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far it is, for heartbeats."""

    facts: dict[str, int | str]


class Made(msgspec.Struct, frozen=True, kw_only=True, tag="made"):
    """What the code made, before anything is written."""

    columns: dict[str, Any]
    aside_columns: dict[str, Any] | None
    external: list[str]
    full_reads: dict[str, str]


class Files(msgspec.Struct, frozen=True, kw_only=True, tag="files"):
    """What was written, by names alone, and what the checks found. `removed` are files whose rows that stay are in `kept`."""

    new: list[str]
    kept: list[str]
    aside: list[str] | None
    removed: list[str] | None
    results: list[dict[str, Any]]


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The code, Spark or the store failed, classified where it happened."""

    failure: Failure


ToTask = Begin | Store
FromTask = Said | Progress | Made | Files | Failed

_TO_TASK = msgspec.json.Decoder(ToTask)
_FROM_TASK = msgspec.json.Decoder(FromTask)


def framed(message: ToTask | FromTask) -> bytes:
    """A message as it is sent."""
    data = msgspec.json.encode(message)
    if len(data) > TASK_MESSAGE_BYTES_MAX:
        raise InvalidInput(
            f"a message of {len(data)} bytes between a worker and its task", hint="make fewer files in a task"
        )
    return len(data).to_bytes(_LENGTH_BYTES) + data


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next message. IncompleteReadError where the other side is gone."""
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
    if length > TASK_MESSAGE_BYTES_MAX:
        raise InvalidInput(f"a message of {length} bytes between a worker and its task")
    return await reader.readexactly(length)


def to_task(data: bytes) -> ToTask:
    """What a worker said. Another format is of another Arco, which must not be guessed at."""
    try:
        found: ToTask = _TO_TASK.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this is no message to a task: {error}") from None
    if isinstance(found, Begin) and found.format != FORMAT:
        raise InvalidInput(f"a task of format {found.format}, and this is format {FORMAT}", hint="start the worker again")
    return found


def from_task(data: bytes) -> FromTask:
    """What the process of a task said, whoever in it said so."""
    try:
        found: FromTask = _FROM_TASK.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the process of the task said something that is no message: {error}") from None
    return found
