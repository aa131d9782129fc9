"""What is sent away for want of room, as its client hears it: who may come again is told when (PROTOCOLS C8)."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from arco.catalog import commits as module
from arco.kernel.errors import OutcomeUnknown
from arco.surface.http.failures import failure, overdue
from integration.catalog_costs import PREFIX, SCHEMA, TABLES, Ground, Reply, Server, property_commit


async def _asked_while_somebody_is_at_the_head(
    ground: Ground, server: Server, waits_s: float, *, keys: tuple[bool, ...]
) -> list[Reply]:
    await server.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
    await server.ask("POST", TABLES, {"name": "t", "schema": SCHEMA})
    entry = server.catalog.parts.tier1.names.entries[(("db",), "t")]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server.catalog.table_commits.lines.at_the_head(entry.uuid))
        asked = [
            asyncio.ensure_future(server.ask("POST", f"{TABLES}/t", property_commit(str(number)), key=key))
            for number, key in enumerate(keys)
        ]
        await ground.clock.sleep(waits_s)
    return await asyncio.gather(*asked)


def told(reply: Reply) -> tuple[int, str | None]:
    return reply.status, reply.headers.get("retry-after")


def test_a_commit_to_a_full_table_is_told_when_to_come_again_with_a_key_or_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_QUEUE_MAX", 1)
    ground = Ground()
    asked = _asked_while_somebody_is_at_the_head(ground, ground.server(), 1.0, keys=(True, True, False))
    assert [told(one) for one in ground.run(asked)] == [(200, None), (504, "1"), (503, "1")]


def test_so_is_one_that_waited_too_long_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_QUEUE_S_MAX", 2.0)
    ground = Ground()
    asked = _asked_while_somebody_is_at_the_head(ground, ground.server(), 3.0, keys=(True, False))
    assert [told(one) for one in ground.run(asked)] == [(504, "1"), (503, "1")]


@pytest.mark.parametrize("has_key", [True, False])
def test_who_does_not_know_is_asked_to_come_again_only_with_a_key(has_key: bool) -> None:
    """Without one, its change could be made twice."""
    unknown = failure(OutcomeUnknown("the store went silent"), "id", may_come_again=has_key)
    late = overdue("id", mutates=True, may_come_again=has_key)
    assert [("Retry-After" in one.headers) for one in (unknown, late)] == [has_key, has_key]
    assert [one.status for one in (unknown, late)] == [504, 504]
