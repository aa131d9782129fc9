"""Settling an attempt: every key that it may still use, and none that belongs to another."""

import msgspec
import pytest

from arco.catalog.settling import DidLand, NeverLands
from arco.kernel.errors import ArcoError, Conflict
from arco.kernel.ids import RunId, encode_ulid
from arco.kernel.limits import PUBLISH_REBASES_MAX
from arco.ledger.run_entries import OutputStaged, Publish, RowsAside
from arco.servo.schedule.publish_keys import aside_of, publish_key
from arco.servo.schedule.settling import CatalogSettler
from unit.catalog.ground import MARKER, POINTER, Ground, Server, setting, story

RUN = RunId(encode_ulid(3))
TASK = "task_0123456789abcdef"
NEVER_HOLDS = {"type": "assert-current-schema-id", "current-schema-id": 77}


def staged(ground: Ground, attempt: int = 1) -> OutputStaged:
    at_ms = ground.clock.at_ms
    publish = Publish(key=publish_key(RUN, TASK, attempt, 0, at_ms), operation="updateTable", request_hash="")
    return OutputStaged(task=TASK, attempt=attempt, at_ms=at_ms, materialization_id="m", action="continue", publish=publish)


def key(ground: Ground, rebase: int, attempt: int = 1) -> str:
    return publish_key(RUN, TASK, attempt, rebase, ground.clock.at_ms)


async def refused(server: Server, key: str) -> None:
    """A commit whose requirement does not hold: the attempt goes on to its next key."""
    with pytest.raises(Conflict):
        await server.commit("a", key, setting(key, NEVER_HOLDS))


async def landed(ground: Ground, server: Server, *keys: str) -> int:
    await server.settle()
    found = await ground.audit()
    return sum(len(found.landings(server.file_of(one))) for one in keys)


@story
async def test_an_attempt_that_never_committed_never_will():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    keys = [key(ground, rebase) for rebase in range(3)]
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead"), NeverLands)
    with pytest.raises(ArcoError):
        await worker.commit("a", keys[0])
    assert await landed(ground, worker, *keys) == 0


@pytest.mark.parametrize("refusals", [1, 3])
def test_an_attempt_that_was_refused_cannot_use_its_next_key(refusals: int):
    @story
    async def told():
        ground = Ground()
        worker, settler = ground.server(), ground.server()
        await worker.found("a")
        keys = [key(ground, rebase) for rebase in range(refusals + 1)]
        for one in keys[:-1]:
            await refused(worker, one)
        assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead"), NeverLands)
        with pytest.raises(ArcoError):
            await worker.commit("a", keys[-1])
        assert await landed(ground, worker, keys[-1]) == 0

    told()


@story
async def test_a_commit_under_a_later_key_that_is_under_way_is_dead():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    await refused(worker, key(ground, 0))
    swing = worker.line.delay("put", POINTER)
    await swing.holds(worker.commit("a", key(ground, 1)))
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead"), NeverLands)
    await swing.answer()
    with pytest.raises(ArcoError):
        await worker.commit("a", key(ground, 2))
    assert await landed(ground, worker, key(ground, 1), key(ground, 2)) == 0


@story
async def test_a_commit_that_landed_under_a_later_key_is_found():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    await refused(worker, key(ground, 0))
    await worker.commit("a", key(ground, 1))
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead"), DidLand)


def staged_with_rows_aside(ground: Ground, table_uuid: str) -> OutputStaged:
    one = staged(ground)
    assert one.publish is not None
    beside = RowsAside(table_uuid=table_uuid, snapshot_id=7)
    return msgspec.structs.replace(one, publish=msgspec.structs.replace(one.publish, aside=beside))


def aside_key(ground: Ground, rebase: int) -> str:
    return publish_key(RUN, aside_of(TASK), 1, rebase, ground.clock.at_ms)


@pytest.mark.parametrize("refusals", [0, 2])
def test_the_rows_that_an_attempt_set_aside_cannot_land_after_it_was_settled(refusals: int):
    """It stalls before it sends them, is recorded as cancelled, and wakes up."""

    @story
    async def told():
        ground = Ground()
        worker, settler = ground.server(), ground.server()
        await worker.found("a")
        for rebase in range(refusals):
            await refused(worker, aside_key(ground, rebase))
        stalled = staged_with_rows_aside(ground, "u")
        assert isinstance(await CatalogSettler(settler.ws).settle(RUN, stalled, "dead"), NeverLands)
        with pytest.raises(ArcoError):
            await worker.commit("a", aside_key(ground, refusals))
        assert await landed(ground, worker, aside_key(ground, refusals)) == 0

    told()


@story
async def test_rows_set_aside_do_not_make_an_output_that_never_lands_one_that_did():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    await worker.commit("a", aside_key(ground, 0))
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged_with_rows_aside(ground, "u"), "dead"), NeverLands)


@story
async def test_another_attempt_is_left_alone():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead")
    await worker.commit("a", key(ground, 0, attempt=2))
    assert await landed(ground, worker, key(ground, 0, attempt=2)) == 1


@story
async def test_what_is_not_committed_needs_no_settling():
    ground = Ground()
    settler = ground.server()
    nothing = OutputStaged(task=TASK, attempt=1, at_ms=1, materialization_id="m", action="continue")
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, nothing, "dead"), NeverLands)
    assert settler.line.asked == []


@story
async def test_an_attempt_that_used_up_its_keys_has_none_left():
    ground = Ground()
    worker, settler = ground.server(), ground.server()
    await worker.found("a")
    for rebase in range(PUBLISH_REBASES_MAX):
        await refused(worker, key(ground, rebase))
    assert isinstance(await CatalogSettler(settler.ws).settle(RUN, staged(ground), "dead"), NeverLands)
    assert not [one for one in settler.line.asked if "get" in one and POINTER in one]
    assert len([one for one in settler.line.asked if "put" in one and MARKER in one]) == PUBLISH_REBASES_MAX
