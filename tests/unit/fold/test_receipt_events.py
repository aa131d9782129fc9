"""Receipts become events of the ledger: once for each commit, with everything that the metadata file said then."""

import gzip

import msgspec
import pytest

from arco.fold.finding import Batches
from arco.fold.receipt_events import ReceiptEvents
from arco.iceberg import requests
from arco.iceberg.table import new_table
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Throttled
from arco.ledger import reading
from arco.ledger.iceberg_events import TABLE_COMMITTED, TableCommitted
from arco.storage.keys import Domain
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent
from arco_sim.scenarios.fold_work import SCOPE
from unit.fold.ground import HEAD, TABLE, Ground, metadata_location, story

ID, NAME = ({"id": number, "name": name, "required": False, "type": "long"} for number, name in ((1, "id"), (2, "name")))
SCHEMAS = [{"schema-id": number, "type": "struct", "fields": [ID, NAME][: number + 1]} for number in range(2)]


def snapshot(number: int, **summary: str) -> dict:
    return {
        "snapshot-id": 100 + number,
        "sequence-number": number,
        "timestamp-ms": 1_735_689_600_000 + number,
        "schema-id": 0,
        "manifest-list": "x",
        "summary": {"operation": "append", "total-records": str(number), **summary},
    } | ({"parent-snapshot-id": 99 + number} if number > 1 else {})


def document(schemas: int, snapshots: int) -> dict:
    return {
        "format-version": 2,
        "table-uuid": str(TABLE),
        "location": "s3://lake/t",
        "last-sequence-number": snapshots,
        "schemas": SCHEMAS[:schemas],
        "current-schema-id": schemas - 1,
        "snapshots": [snapshot(number + 1, **{"arco.run-id": f"run{number}"}) for number in range(snapshots)],
        "current-snapshot-id": 100 + snapshots if snapshots else -1,
    }


async def announced(ground: Ground) -> list[TableCommitted]:
    events = await reading.events(ground.store, SCOPE, Domain.ICEBERG)
    found = [TableCommitted.of(event) for event in events if event.type == TABLE_COMMITTED]
    return sorted(found, key=lambda one: one.commit_number)


def test_a_commit_is_announced_with_what_its_metadata_file_said():
    async def play(ground: Ground) -> None:
        await ground.commit(0, document(1, 0))
        await ground.commit(1, document(1, 1), snapshot=101)
        await ground.commit(2, document(2, 1), snapshot=101)
        done = await ground.folding().round(HEAD)
        assert (done.receipts, done.segments, done.events) == (3, 1, 3)
        first, second, third = await announced(ground)
        assert (first.table_uuid, first.kind, first.source, first.principal) == (str(TABLE), "table", "servo", "me")
        assert (first.commit_number, first.metadata_location) == (0, metadata_location(0))
        assert (first.metadata.schemas, first.metadata.added, first.metadata.current) == ([SCHEMAS[0]], (), None)
        (added,) = second.metadata.added
        assert added == second.metadata.current
        assert (added.snapshot_id, added.sequence_number, added.operation) == (101, 1, "append")
        assert (added.summary["arco.run-id"], added.summary["total-records"]) == ("run0", "1")
        assert (third.metadata.added, third.metadata.current.snapshot_id) == ((), 101), "this commit made no snapshot"
        assert third.metadata.schemas == [SCHEMAS[1]], "the current one, and what is new"
        assert third.metadata.current_schema_id == 1

    story(play)


def test_all_schemas_and_the_newest_snapshot_are_told_where_the_file_before_is_gone():
    async def play(ground: Ground) -> None:
        await ground.commit(1, document(2, 3), snapshot=103)
        await ground.folding().round(HEAD)
        (told,) = await announced(ground)
        assert told.metadata.schemas == SCHEMAS
        assert [one.snapshot_id for one in told.metadata.added] == [103]

    story(play)


def test_it_is_told_whether_a_commit_moved_main():
    """A snapshot on a branch does not, and going back to an old one does."""

    async def play(ground: Ground) -> None:
        await ground.commit(0, document(1, 0))
        await ground.commit(1, document(1, 2), snapshot=102)
        await ground.commit(2, document(1, 3) | {"current-snapshot-id": 102}, snapshot=102)
        await ground.commit(3, document(1, 3) | {"current-snapshot-id": 101}, snapshot=101)
        await ground.commit(5, document(1, 3), snapshot=103)
        await ground.folding().round(HEAD)
        told = [one.metadata for one in await announced(ground)]
        assert [one.moved for one in told] == [False, True, False, True, None]
        assert [one.snapshot_id for one in told[2].added] == [103]

    story(play)


def test_a_commit_whose_file_is_gone_or_damaged_is_announced_without_it():
    async def play(ground: Ground) -> None:
        await ground.commit(0, None)
        await ground.commit(1, {"format-version": "?"})
        await MemoryStore.put(ground.store, metadata_location(2), b"not JSON", Absent())
        await ground.commit(2, None)
        await ground.folding().round(HEAD)
        assert [one.metadata for one in await announced(ground)] == [None, None, None]

    story(play)


def test_the_schemas_of_a_real_table_and_a_compressed_file_are_read():
    async def play(ground: Ground) -> None:
        wanted = {"name": "t", "schema": {"type": "struct", "fields": [ID, NAME]}}
        made = new_table(requests.parse_create_table(wanted), table_uuid=str(TABLE), location="s3://lake/t", now_ms=1)
        name = await ground.commit(0, None)
        data = gzip.compress(msgspec.json.encode(made.document))
        location = metadata_location(0)

        async def read(where: str) -> bytes | None:
            return data if where == location else None

        events = ReceiptEvents(ground.store, SCOPE, read, ground.clock, SeededEntropy(9))
        await events.append([name])
        (told,) = await announced(ground)
        assert told.metadata is None, "its name does not say that it is compressed"
        plain = msgspec.json.encode(made.document)

        async def read_plain(_: str) -> bytes | None:
            return plain

        again = ReceiptEvents(ground.store, SCOPE, read_plain, ground.clock, SeededEntropy(8))
        await again.append([name])
        events_of_both = await reading.events(ground.store, SCOPE, Domain.ICEBERG)
        assert len(events_of_both) == 1, "one commit, one event"

    story(play)


def test_a_view_is_announced_as_one():
    async def play(ground: Ground) -> None:
        versions = [{"version-id": 1, "schema-id": 0}]
        view = {"view-uuid": "u", "format-version": 1, "location": "s3://lake/v", "schemas": SCHEMAS[:1]}
        await ground.commit(0, view | {"versions": versions, "current-version-id": 1})
        await ground.folding().round(HEAD)
        (told,) = await announced(ground)
        assert (told.kind, told.metadata.current_schema_id, told.metadata.schemas) == ("view", 0, SCHEMAS[:1])

    story(play)


def test_two_folders_announce_the_same_event():
    async def play(ground: Ground) -> None:
        await ground.commit(0, document(1, 0))
        one, other = ground.folding(1), ground.folding(2)
        done = []

        async def rival(what: str, key: str) -> None:
            if what == "put" and "/manifests/" in key and not done:
                done.append(True)
                await other.catch_up(HEAD)

        ground.store.before = rival
        await one.catch_up(HEAD)
        await one.catch_up(HEAD)
        assert done
        assert len(ground.store.named("/ledger/")) == 2
        assert len(await reading.events(ground.store, SCOPE, Domain.ICEBERG)) == 1
        assert (await one.round(HEAD)).receipts == 0

    story(play)


def test_a_receipt_that_cannot_be_read_is_left_and_holds_nobody_up():
    async def play(ground: Ground) -> None:
        bad = await ground.commit(0, None)
        await ground.store.damage(bad)
        await ground.commit(1, document(1, 0))
        done = await ground.folding().catch_up(HEAD)
        assert (done.receipts, done.more) == (1, False)
        assert [ground.folding().lists.full(name) for name in done.unreadable] == [bad]

    story(play)


def test_receipts_are_told_in_batches():
    async def play(ground: Ground) -> None:
        for number in range(5):
            await ground.commit(number, None)
        folding = ground.folding(batches=Batches(receipts=2))
        first = await folding.round(HEAD)
        assert (first.receipts, first.more) == (2, True)
        await folding.catch_up(HEAD)
        assert len(await announced(ground)) == 5
        assert (await folding.round(HEAD)).receipts == 0

    story(play)


def test_a_schema_too_large_for_an_event_is_left_out():
    async def play(ground: Ground) -> None:
        huge = {"schema-id": 0, "type": "struct", "fields": [{**ID, "doc": "x" * 2_000_000}]}
        await ground.commit(0, document(1, 0) | {"schemas": [huge]})
        await ground.folding().round(HEAD)
        (told,) = await announced(ground)
        assert (told.metadata.schemas, told.metadata.current_schema_id) == ([], 0)

    story(play)


def test_receipts_whose_segment_could_not_be_stored_are_told_later():
    async def play(ground: Ground) -> None:
        await ground.commit(0, document(1, 0))
        folding = ground.folding()

        async def busy(what: str, key: str) -> None:
            if what == "put" and "/ledger/" in key:
                raise Throttled("not now")

        ground.store.before = busy
        with pytest.raises(Throttled):
            await folding.round(HEAD)
        ground.store.before = None
        done = await folding.round(HEAD)
        assert (done.receipts, done.events) == (1, 1)
        assert len(await announced(ground)) == 1

    story(play)
