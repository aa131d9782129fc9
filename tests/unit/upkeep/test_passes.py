"""A pass as a whole: by whose clock, how many at once, what the ledger hears, and what a failing job leaves to the others."""

import asyncio

import pytest

from arco.catalog.catalog import Catalog
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import InvalidInput, Unavailable
from arco.ledger.audit_events import UpkeepCompleted
from arco.ledger.reading import events
from arco.storage.keys import Domain
from arco.storage.local import LocalStore
from arco.storage.port import Absent
from arco.upkeep import markers
from arco.upkeep.jobs import JOBS
from arco.upkeep.passes import due, jobs_named, run_job, upkeep_pass
from arco.upkeep.sweep import Setting, Sweep
from stand_ins.hand_clock import HandClock
from unit.catalog.ground import MARKER, METADATA, SCOPE, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround


async def litter(ground: UpkeepGround) -> None:
    server = ground.server()
    await server.found("a")
    for number in range(40):
        await server.commit("a", f"{number}")
    await server.settle()


@story
async def test_hazard_12_the_clock_of_a_machine_decides_nothing():
    ground = UpkeepGround()
    await litter(ground)
    before = ground.objects()
    ahead = HandClock(ground.clock.now_ms() + 100 * DAY_S * 1000)
    parts = Catalog.open(ground.store, "file:///lake", SCOPE, ahead, SeededEntropy("ahead")).parts
    reports = await upkeep_pass(Setting(parts))
    assert not any(report.deleted or report.failed for report in reports)
    assert set(before) <= set(ground.objects())


@story
async def test_any_number_may_do_the_same_at_once():
    ground = UpkeepGround()
    await litter(ground)
    ground.later(100 * DAY_S)
    kept = ground.objects(METADATA)
    await asyncio.gather(*(ground.upkeep() for _ in range(4)))
    assert not ground.objects(MARKER)
    assert ground.objects(METADATA) == kept
    assert (await ground.server().properties("a"))["last"] == "39"


@story
async def test_a_pass_that_was_killed_is_finished_by_the_next():
    ground = UpkeepGround()
    await litter(ground)
    ground.later(100 * DAY_S)
    keeper = ground.server()
    held = keeper.line.delay("delete", MARKER)
    await held.holds(ground.upkeep("markers", by=keeper))
    keeper.line.cut()
    assert ground.objects(MARKER)
    await ground.upkeep("markers")
    assert not ground.objects(MARKER)


@story
async def test_the_ledger_hears_what_was_done_and_nothing_of_idle_passes():
    ground = UpkeepGround()
    await litter(ground)
    await ground.upkeep()
    assert not await events(ground.store, SCOPE, Domain.AUDIT)
    ground.later(100 * DAY_S)
    await ground.upkeep(dry_run=True)
    assert not await events(ground.store, SCOPE, Domain.AUDIT)
    reports = await ground.upkeep()
    told = {one.subject: UpkeepCompleted.of(one) for one in await events(ground.store, SCOPE, Domain.AUDIT)}
    assert told.keys() == {kind for kind, report in reports.items() if report.did_something}
    assert told["markers"].deleted == reports["markers"].deleted == 41
    assert told["markers"].bytes == reports["markers"].bytes > 0


@story
async def test_the_ledger_hears_of_a_job_that_failed_once_a_day():
    ground = UpkeepGround()
    await litter(ground)

    async def a_pass() -> None:
        keeper = ground.server()
        keeper.line.fail("list", "/iceberg_staged/")
        await upkeep_pass(Setting(keeper.ws), jobs_named(["staged"]))

    async def told() -> list[tuple[str, bool]]:
        found = [UpkeepCompleted.of(one) for one in await events(ground.store, SCOPE, Domain.AUDIT)]
        return [(one.kind, one.failed is not None) for one in found]

    await a_pass()
    assert await told() == [("staged", True)]
    ground.later(HOUR_S)
    await a_pass()
    assert await told() == [("staged", True)]
    ground.later(DAY_S)
    await a_pass()
    assert await told() == [("staged", True)] * 2


@story
async def test_a_job_that_fails_says_so_and_the_others_are_done():
    ground = UpkeepGround()
    await litter(ground)
    ground.later(100 * DAY_S)
    keeper = ground.server()
    keeper.line.fail("list", "/iceberg_staged/")
    reports = {one.kind: one for one in await upkeep_pass(Setting(keeper.ws))}
    assert reports["staged"].failed is not None
    assert reports["markers"].deleted == 41


@story
async def test_what_a_job_that_fails_says_of_itself_is_what_went():
    """Deletions go side by side, and the last of them wait for more when a listing fails."""
    ground = UpkeepGround()
    await litter(ground)
    ground.later(100 * DAY_S)
    before = ground.objects(MARKER)
    keeper = ground.server()
    keeper.line.fail("delete", MARKER)
    (report,) = await upkeep_pass(Setting(keeper.ws), jobs_named(["markers"]))
    assert report.failed is not None
    assert 0 < report.deleted < len(before)
    assert report.deleted == len(before) - len(ground.objects(MARKER)) == sum(report.why.values())


@story
async def test_what_a_job_had_decided_about_when_it_failed_goes():
    """A listing that fails at the same place every day must not keep what comes before it for ever."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await server.settle()
    ground.later(100 * DAY_S)
    before = len(ground.objects(MARKER))

    async def collect(sweep: Sweep) -> None:
        await markers.collect(sweep)
        raise Unavailable("the store is away")

    report = await run_job(Setting(ground.server().ws), "markers", collect)
    assert report.failed is not None
    assert not ground.objects(MARKER)
    assert report.deleted == before == 1


@story
async def test_what_has_no_name_of_ours_is_left_alone():
    ground = UpkeepGround()
    await litter(ground)
    strange = [
        f"t/w/_catalog/{folder}/notes.txt" for folder in ("iceberg_idempotency", "iceberg_pointers", "events", "core")
    ]
    for key in strange:
        await ground.store.put(key, b"mine", Absent())
    ground.later(1000 * DAY_S)
    await ground.upkeep()
    assert set(strange) <= set(ground.objects())


def test_a_kind_that_is_not_there_is_refused():
    with pytest.raises(InvalidInput, match="no kind 'dust'"):
        jobs_named(["dust"])
    assert [job.kind for job in jobs_named(["receipts", "markers"])] == ["markers", "receipts"]
    assert jobs_named([]) == JOBS


@pytest.mark.parametrize("dry_run", [False, True])
def test_temporaries_of_the_dead_are_told_though_they_went_with_the_first_write(tmp_path, dry_run):
    """Which is whose, the local store knows; upkeep only asks it. What a dry run writes to ask for the time is such a write."""

    async def tell() -> None:
        ground = UpkeepGround()
        store = LocalStore(str(tmp_path), ground.clock, SeededEntropy(1))
        dead = tmp_path / ".arco" / "tmp" / "dead"
        dead.mkdir(parents=True)
        (dead / "0").write_bytes(b"half")
        (tmp_path / ".arco" / "tmp" / "dead.lock").write_bytes(b"")
        parts = Catalog.open(store, f"file://{tmp_path}", SCOPE, ground.clock, SeededEntropy(2)).parts
        try:
            (report,) = await upkeep_pass(Setting(parts, dry_run=dry_run), jobs_named(["temporaries"]))
            (again,) = await upkeep_pass(Setting(parts, dry_run=dry_run), jobs_named(["temporaries"]))
        finally:
            await store.close()
        assert report.failed is None
        assert not dead.exists()
        assert (report.changed, again.changed) == ((0, 0) if dry_run else (1, 0))
        said = ("1 unfinished writes of killed processes went with the first write of this one",)
        assert (report.notes, again.notes) == (said if dry_run else (), ())

    asyncio.run(tell())


@story
async def test_upkeep_of_one_table_is_not_taken_for_that_of_all():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    jobs = jobs_named(["files"])
    await ground.upkeep("files", asked=[(await server.load("a")).uuid])
    assert await due(Setting(server.ws), jobs) == jobs
    await ground.upkeep("files")
    assert await due(Setting(server.ws), jobs) == ()


@story
async def test_tables_that_somebody_asks_for_do_not_wait_for_the_daily_look_of_a_server():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await ground.upkeep()
    asked = Setting(server.ws, asked=frozenset({(await server.load("a")).uuid}))
    jobs = jobs_named(["files"])
    assert await due(Setting(server.ws), jobs) == ()
    assert await due(asked, jobs) == jobs


@story
async def test_a_store_that_is_away_for_a_moment_ends_no_pass_and_keeps_no_job_from_its_work():
    ground = UpkeepGround()
    await litter(ground)
    ground.later(100 * DAY_S)
    keeper = ground.server()
    jobs = jobs_named(["files", "markers"])
    keeper.line.fail("put", "/upkeep/files")
    assert [one.failed for one in await upkeep_pass(Setting(keeper.ws), jobs)] == [None, None]
    assert not ground.objects(MARKER)
    keeper.line.fail("head", "/upkeep/files")
    assert await due(Setting(keeper.ws), jobs) == jobs, "whoever does it hears what is wrong"
