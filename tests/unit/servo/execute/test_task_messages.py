"""What a worker and the process of a task say to each other: typed, bounded, and nothing but data."""

import asyncio
import pickle
from typing import Any

import msgspec
import pytest

from arco.kernel.errors import InvalidInput
from arco.ledger.run_entries import Failure
from arco.servo.execute.task_messages import (
    FORMAT,
    Begin,
    Failed,
    Files,
    FromTask,
    Made,
    PinnedTable,
    Progress,
    ProjectSource,
    Said,
    SparkPart,
    Store,
    framed,
    from_task,
    read_frame,
    to_task,
)
from arco.servo.plan.document import Estimate, PlannedTask
from arco.servo.plan.facts import AssetFacts

TASK = PlannedTask(
    id="task_0123456789abcdef",
    asset="db.total",
    partitions=[{"date": ["2025-01-01", "2025-01-02"]}],
    partition_count=1,
    stage=0,
    priority=0,
    depends_on=(),
    inputs=(),
    because=(),
    estimate=Estimate(partitions=1),
)
BEGIN = Begin(
    format=FORMAT,
    project=ProjectSource(folder="/p", name="db", namespace="db", assets=("assets",), gate="strict"),
    code_version="code",
    spark=SparkPart(master="local[1]", name="arco db", conf={}, jars_folder=None, log_file="/tmp/spark.log"),
    root="s3://bucket/lake",
    options={"access_key_id": "ASIA", "session_token": "token"},
    parameters={"limit": "10"},
    at_ms=1,
    facts={"db.total": AssetFacts(dynamic={"region": ["de", "fr"]})},
    run="01JD7Z0Q3V8K4M2N6P9R5T1WXY",
    task=TASK,
    attempt=2,
    materialization="01JD7Z0Q3V8K4M2N6P9R5T1WXZ",
    tables={
        "named": PinnedTable(snapshot_id=2**62, table={"format-version": 2, "refs": {}}),
        "new": PinnedTable(snapshot_id=None, table=None),
    },
)
ANSWERS: list[FromTask] = [
    Said("info", "a line with \u2028 and \x00"),
    Progress({"phase": "writing", "tasks": 3}),
    Made(columns={"type": "struct", "fields": []}, aside_columns=None, external=["s3://x"], full_reads={"a": "why"}),
    Files(new=["s3://b/f"], kept=[], aside=None, removed=["s3://b/g"], results=[{"check": "c", "measured": 1.5}]),
    Failed(Failure(kind="transform", message="division by zero", transient=True)),
]


def taken_apart(data: bytes) -> bytes:
    async def read() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_frame(reader)

    return asyncio.run(read())


@pytest.mark.parametrize("message", [BEGIN, Store(table={"a": [1, None]}, aside=None), Store(table={}, aside={"b": 2})])
def test_what_is_said_to_a_task_arrives_as_it_was(message: Begin | Store) -> None:
    assert to_task(taken_apart(framed(message))) == message


@pytest.mark.parametrize("message", ANSWERS, ids=lambda one: type(one).__name__)
def test_what_a_task_says_arrives_as_it_was(message: FromTask) -> None:
    assert from_task(taken_apart(framed(message))) == message


def test_a_task_of_another_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="format 2"):
        to_task(msgspec.json.encode(msgspec.structs.replace(BEGIN, format=2)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"type":"begin"}',
        b'{"type":"files","new":"s3://b/f","kept":[],"aside":null,"removed":null,"results":[]}',
        b'{"type":"files","new":[1],"kept":[],"aside":null,"removed":null,"results":[]}',
        b'{"type":"progress","facts":{"tasks":[]}}',
        b"\xff\xfe",
        b"[" * 100_000,
        pickle.dumps(Said("info", "x")),
    ],
    ids=str,
)
def test_whatever_else_a_task_writes_to_the_pipe_is_no_message(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="no message"):
        from_task(data)


def test_a_message_without_end_is_not_read() -> None:
    with pytest.raises(InvalidInput, match="bytes"):
        taken_apart(b"\xff\xff\xff\xff")


def test_a_pipe_that_ends_in_the_middle_is_an_end() -> None:
    data: Any = framed(ANSWERS[0])
    with pytest.raises(asyncio.IncompleteReadError):
        taken_apart(data[:-1])
