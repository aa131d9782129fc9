"""What is answered of names: true of the state that a change was made on, the same in every retry, and never a guess."""

import pytest

from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey, State
from arco.catalog.inventory import Inventory, NewTable
from arco.catalog.manifest import Author
from arco.catalog.model import Format
from arco.catalog.namespaces import Changes, change_namespace
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import InvalidInput, OutcomeUnknown, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import REQUEST_FRESH_S, SWAP_ATTEMPTS_MAX
from unit.catalog.ground import MANIFEST, MARKER, NAMESPACE, POINTER, Ground, Server, story

CSV = NewTable(NAMESPACE, "files", Format.CSV, "s3://other/files")


def asked(key: str, operation: str, what: str = "") -> RequestKey:
    return RequestKey(key, operation, what)


async def change(server: Server, key: str, removals: tuple[str, ...] = (), **updates: str) -> Changes:
    request = asked(key, "updateProperties", f"{removals} {updates}")
    return await change_namespace(server.ws, NAMESPACE, removals, updates, request, Author())


async def drop(server: Server, name: str, key: str, *, purge: bool = False) -> None:
    request = asked(key, "platform.drop", f"{name} {purge}")
    await Inventory(server.catalog).drop((NAMESPACE, name), purge=purge, key=request, author=Author())


async def two_servers(*tables: str) -> tuple[Ground, Server, Server]:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found(*tables)
    await two.ws.tier1.current()
    return ground, one, two


def fall_silent(server: Server) -> None:
    for what in ("get", "head", "put"):
        server.line.fail(what, "", times=1000)


# C8


@story
async def test_rule_c8_a_change_of_properties_that_landed_is_not_said_to_be_nothing():
    _, one, two = await two_servers()
    await change(one, "K", p="1")
    await one.settle()
    fall_silent(two)
    with pytest.raises(OutcomeUnknown):
        await change(two, "K", p="1")


@story
async def test_rule_c8_a_drop_that_landed_is_not_said_to_be_nothing():
    _, one, two = await two_servers("a")
    await drop(one, "a", "K")
    await one.settle()
    fall_silent(two)
    with pytest.raises(OutcomeUnknown):
        await drop(two, "a", "K")


@story
async def test_a_retried_drop_hears_its_answer_though_the_name_is_of_another_kind_by_now():
    """The files of what has the name now are nobody's to purge. The retry is not about it."""
    _, one, two = await two_servers("files")
    await drop(one, "files", "K", purge=True)
    await one.settle()
    await Inventory(one.catalog).create(CSV, asked("register", "platform.register"), Author())
    await drop(two, "files", "K", purge=True)
    assert (await Inventory(two.catalog).find((NAMESPACE, "files"))).format is Format.CSV


@story
async def test_a_drop_whose_server_died_is_finished_for_the_table_that_it_was_about():
    """The tombstone stands and the name is there still; then its server is gone."""
    ground, one, two = await two_servers("a")
    written = one.line.delay("put", POINTER)
    await written.holds(drop(one, "a", "K"))
    await written.land()
    one.line.cut()
    ground.long_after()
    await drop(two, "a", "K")
    assert (await two.dropped("a")).entry.name == "a"
    assert len((await ground.audit()).operations(RequestKey("K", "", "").hash)) == 1


@story
async def test_a_table_of_another_format_is_dropped_once_and_never_purged():
    ground, one, two = await two_servers()
    await Inventory(one.catalog).create(CSV, asked("register", "platform.register"), Author())
    with pytest.raises(InvalidInput, match="not Arco's to purge"):
        await drop(one, "files", "purge", purge=True)
    await drop(one, "files", "K")
    await drop(two, "files", "K")
    assert len((await ground.audit()).operations(RequestKey("K", "", "").hash)) == 1


# What a change of properties did


@story
async def test_what_was_removed_is_said_of_the_state_that_the_change_was_made_on():
    _, one, two = await two_servers()

    async def rival() -> None:
        await change(two, "rival", p="1")

    one.line.before("put", MANIFEST, rival)
    assert await change(one, "K", ("p", "q", "p"), r="2") == Changes(("r",), ("p",), ("q",))


@pytest.mark.parametrize("fold", [False, True], ids=["in the tail", "in the chain"])
def test_what_was_removed_is_said_by_who_finishes_it_too(fold):
    @story
    async def told() -> None:
        ground, one, two = await two_servers()
        await change(one, "first", p="1")
        swing = one.line.delay("put", MANIFEST)
        await swing.holds(change(one, "K", ("p", "q")))
        await swing.land()
        one.line.cut()
        ground.long_after()
        await change(two, "later", z="1")
        if fold:
            await checkpoint(two.ws.tier1, ground.clock, two.ws.entropy)
            two = ground.server()
        assert await change(two, "K", ("p", "q")) == Changes((), ("p",), ("q",))
        assert await change(two, "K", ("p", "q")) == Changes((), ("p",), ("q",))

    told()


# Others all the time


async def make_in_vain(server: Server, rival: Server) -> None:
    """A namespace under the key K, by who is never quick enough: the client is told that nothing was done."""
    numbers = iter(range(SWAP_ATTEMPTS_MAX))

    async def quicker() -> None:
        await change(rival, f"rival {next(numbers)}", p="1")

    for _ in range(SWAP_ATTEMPTS_MAX):
        server.line.before("put", MANIFEST, quicker)
    with pytest.raises(RetryLater):
        await server.make_namespace("new", "K")


@story
async def test_who_is_never_quick_enough_is_told_to_come_again_and_is_done_then():
    _, one, two = await two_servers()
    await make_in_vain(one, two)
    held = await one.ws.markers.object(asked("K", "createNamespace", "new")).read()
    assert held is not None
    assert held.value.state is State.IN_PROGRESS
    await one.make_namespace("new", "K")
    assert ("new",) in (await two.ws.tier1.current()).names.namespaces


@story
async def test_rule_c8_what_was_told_as_not_done_is_not_done_by_a_request_that_was_sent_before():
    """Its claim was on its way for long; meanwhile its client asked another server, heard 503 and cleaned up."""
    ground, one, two = await two_servers()
    claim = one.line.delay("put", MARKER)
    first = await claim.holds(one.make_namespace("new", "K"))
    ground.clock.elapsed_s += REQUEST_FRESH_S + 1
    await make_in_vain(two, ground.server())
    ground.long_after()
    await claim.answer()
    with pytest.raises(OutcomeUnknown, match="may have been told that it was not done"):
        await first
    assert ("new",) not in (await two.ws.tier1.current()).names.namespaces
    await ground.server().make_namespace("new", "K")
    assert ("new",) in (await two.ws.tier1.current()).names.namespaces


# A key without a time, used again when its marker is gone

ANY = "6f1b2a9c-1b7e-4c1e-8f0a-5a1c0d2e3f40"


async def forget_markers(ground: Ground) -> None:
    for entry in (await ground.store.list_page("")).entries:
        if MARKER in entry.key:
            await ground.store.delete(entry.key)


@pytest.mark.parametrize("slept", [False, True], ids=["by who did it", "by who has slept"])
def test_a_key_that_comes_again_after_its_marker_is_gone_is_a_new_request(slept):
    @story
    async def told() -> None:
        ground = Ground()
        one, two = ground.server(any_key=True), ground.server(any_key=True)
        await one.found()
        await two.ws.tier1.current()
        await one.make_namespace("a", ANY)
        await one.settle()
        await forget_markers(ground)
        await (two if slept else one).make_namespace("b", ANY)
        assert ("b",) in (await one.ws.tier1.current()).names.namespaces

    told()


@pytest.mark.parametrize("any_key", [False, True])
def test_a_key_in_capitals_is_the_same_key(any_key):
    server = Ground().server(any_key=any_key)
    key = new_uuid7(server.ws.clock, SeededEntropy("key"))
    keys = [server.ws.markers.request_key(spelled, "drop", "") for spelled in (key, key.upper(), key.title())]
    assert keys == [RequestKey(key, "drop", "")] * 3
