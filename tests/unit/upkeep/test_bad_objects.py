"""Every job of upkeep beside an object that nobody can read, or that a later version wrote: it is told by name, with the command
to run, and stays; and the others have their upkeep.

Some jobs open nothing: what they take away is garbage by its name, its age and the names of tier 1, whatever is in it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from arco.catalog.catalog import Catalog
from arco.catalog.feed_pages import Fed, FeedPages
from arco.catalog.idempotency import RequestKey
from arco.iceberg import requests
from arco.kernel.entropy import SeededEntropy
from arco.ledger.asked_runs import AskedRun, AskedRuns, request_id
from arco.storage.keys import AskedVerdictKey, Domain, KeyHash
from arco.storage.memory import MemoryStore
from arco.upkeep.jobs import JOBS
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting
from unit.catalog.ground import COMMIT, FIELD, MANIFEST, METADATA, NAMESPACE, POINTER, RECEIPT, SCOPE, Server
from unit.txn.test_rules_of_transactions import RECORD, marks, transact
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround
from unit.upkeep.table_ground import Table
from unit.upkeep.test_commits_and_receipts import lost_a_race
from unit.upkeep.test_fold_leftovers import FoldGround, consumed_by_all
from unit.upkeep.test_names_and_pointers import dropped_for_good
from unit.upkeep.test_transactions import bank

OPENS_NOTHING = {"markers", "temporaries"}


@dataclass(frozen=True)
class Scene:
    """Garbage, old enough to go. `bad` is what will be damaged; `well` says whether the rest had its upkeep."""

    store: MemoryStore
    bad: str
    well: Callable[[Report], bool]


async def transactions() -> Scene:
    ground, server, keys = await bank("a", "b", "c")
    for pair in (("a", "b"), ("b", "c")):
        await transact(server, keys.next(), *marks("x", *pair))
        await server.settle()
    ground.later(40 * DAY_S)
    return Scene(ground.store, ground.objects(RECORD)[0], lambda report: report.deleted == 1)


async def reconcile() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    before = ground.objects(RECEIPT)
    await server.commit("b", "one")
    await server.settle()
    (last,) = [key for key in ground.objects(RECEIPT) if key not in before]
    await ground.store.delete(last)
    return Scene(ground.store, await _pointer(ground, server, "a"), lambda report: report.changed == 1)


async def dropped() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    bad = await _pointer(ground, server, "a")
    for name in ("a", "b"):
        await dropped_for_good(server, name)
    ground.later(30 * DAY_S)
    return Scene(ground.store, bad, lambda report: report.changed == 1)


async def staged() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    for name in ("a", "b"):
        wanted = requests.parse_create_table({"name": name, "schema": {"type": "struct", "fields": [FIELD]}})
        await server.catalog.staging.stage(NAMESPACE, wanted, RequestKey(f"stage {name}", "createTable", "0"))
    ground.later(10 * DAY_S)
    bad, _ = ground.objects("iceberg_staged")
    return Scene(ground.store, bad, lambda report: report.deleted >= 1 and len(ground.objects("iceberg_staged")) == 1)


async def pointers() -> Scene:
    ground = UpkeepGround()
    await ground.server().found()
    found = [await _half_created(ground, name) for name in ("a", "b")]
    ground.later(30 * DAY_S)
    bad = next(key for key in found[0] if POINTER in key)
    return Scene(ground.store, bad, lambda _: ground.gone(found[1]))


async def creations() -> Scene:
    ground = UpkeepGround()
    await ground.server().found()
    files = []
    for name in ("a", "b"):
        litter = await _half_created(ground, name)
        files += [key for key in litter if METADATA in key]
        await ground.store.delete(next(key for key in litter if POINTER in key))
    ground.later(30 * DAY_S)
    return Scene(ground.store, files[0], lambda report: report.deleted == 1 and ground.gone(files[1:]))


async def snapshots() -> Scene:
    ground, tables = await _two_tables(maintenance_expire__snapshots_enabled="true")
    ground.later(30 * DAY_S)
    return Scene(ground.store, await _metadata(tables[0]), lambda report: report.changed == 1)


async def files() -> Scene:
    ground, tables = await _two_tables(maintenance_orphan__files_enabled="true")
    for table in tables:
        await table.put(f"{(await table.metadata()).location}/data/lost.parquet")
    ground.later(30 * DAY_S)
    return Scene(ground.store, await _metadata(tables[0]), lambda report: report.deleted == 1)


async def metadata() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    orphan = await lost_a_race(ground, server)
    ground.later(3 * DAY_S)
    return Scene(ground.store, await _pointer(ground, server, "b"), lambda _: ground.gone([orphan]))


async def history() -> Scene:
    """The current file of a table, of which some file lost its race."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    orphan = await lost_a_race(ground, server)
    for number in range(3):
        await server.commit("a", f"{number}")
        await server.settle()
    ground.later(3 * DAY_S)
    return Scene(ground.store, await _metadata(Table(ground, server)), lambda _: orphan in ground.objects())


async def versions() -> Scene:
    wanted = {"write_metadata_delete__after__commit_enabled": "true", "write_metadata_previous__versions__max": "1"}
    ground, tables = await _two_tables(**wanted)
    for number in range(4):
        for table in tables:
            await table.set(last=str(number))
        ground.later(HOUR_S)
    ground.later(30 * DAY_S)
    return Scene(ground.store, await _pointer(ground, tables[0].server, "a"), lambda report: report.deleted > 0)


async def markers() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await server.commit("a", "one")
    await server.settle()
    ground.later(30 * DAY_S)
    found = ground.objects("/iceberg_idempotency/")
    return Scene(ground.store, found[0], lambda report: report.deleted == len(found))


async def receipts() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    for label in ("one", "two", "three"):
        await server.commit("a", label)
        await server.settle()
        ground.later(1)
    ground.later(100 * DAY_S)
    pointer = await server.ws.pointers.read((await server.load("a")).uuid)
    assert pointer is not None
    last = {server.ws.receipts.name(one) for one in pointer.value.published}
    bad = next(key for key in ground.objects(RECEIPT) if key not in last)
    return Scene(ground.store, bad, lambda _: set(ground.objects(RECEIPT)) == {bad, *last})


async def feed() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    pages = FeedPages(ground.store, SCOPE, ground.clock, SeededEntropy(4))
    for number in (1, 2, 3):
        await pages.write_checkpoint(Fed(number))
    ground.later(3 * DAY_S)
    *_, second, third = ground.objects("/feed/checkpoints/")
    return Scene(ground.store, third, lambda _: ground.objects("/feed/checkpoints/") == [second, third])


async def asked() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    runs = AskedRuns(ground.store, SCOPE, ground.clock, SeededEntropy(5))
    ids = []
    for name in ("one", "two"):
        wanted = AskedRun(id=str(request_id(name)), project="shop", make=("a",), who="ann", asked_ms=ground.clock.now_ms())
        await runs.withdraw(await runs.ask(wanted), "ann")
        ids.append(wanted.id)
    bad = str(AskedVerdictKey(SCOPE, KeyHash(ids[0])))
    return Scene(ground.store, bad, lambda report: report.deleted == 1)


async def names() -> Scene:
    ground = UpkeepGround()
    await ground.server().found("a")
    chain = ground.objects(COMMIT)
    for name in ("b", "c"):
        slow = ground.server()
        held = slow.line.delay("put", MANIFEST)
        await held.holds(slow.make_namespace(name, name))
        slow.line.cut()
    beside = [key for key in ground.objects(COMMIT) if key not in chain]
    ground.later(3 * DAY_S)
    return Scene(ground.store, beside[0], lambda _: ground.gone(beside[1:]))


async def segments() -> Scene:
    ground = FoldGround()
    await ground.append("a1")
    await ground.append("c1", domain=Domain.CATALOG)
    folding = ground.folding()
    await consumed_by_all(folding)
    (bad,) = ground.store.named("/manifests/assets/")
    ground.later(3 * DAY_S)
    return Scene(ground.store, bad, lambda report: report.changed == 1)


async def state() -> Scene:
    ground = FoldGround()
    folding = ground.folding()
    for day in range(80):
        await ground.publish(folding, f"a{day}")
        ground.later(DAY_S)
    return Scene(ground.store, ground.store.named("/manifests/iceberg/")[3], lambda report: report.deleted > 40)


async def temporaries() -> Scene:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    return Scene(ground.store, await _pointer(ground, server, "a"), lambda report: report.is_well)


SCENES: dict[str, Callable[[], Awaitable[Scene]]] = {
    "transactions": transactions,
    "reconcile": reconcile,
    "dropped": dropped,
    "staged": staged,
    "pointers": pointers,
    "creations": creations,
    "snapshots": snapshots,
    "files": files,
    "metadata": metadata,
    "versions": versions,
    "markers": markers,
    "receipts": receipts,
    "feed": feed,
    "asked": asked,
    "names": names,
    "segments": segments,
    "state": state,
    "temporaries": temporaries,
}


def malformed(_data: bytes) -> bytes:
    return b"{"


def of_a_later_version(data: bytes) -> bytes:
    """The same document as a version of Arco writes it that is not out yet."""
    document = json.loads(data or b"{}")
    document["format-version" if "format-version" in document else "format_version"] = 99
    return json.dumps(document).encode()


def test_every_job_has_its_bad_object() -> None:
    assert set(SCENES) == {job.kind for job in JOBS}


@pytest.mark.parametrize("damaged", [malformed, of_a_later_version])
@pytest.mark.parametrize("kind", SCENES)
def test_a_bad_object_is_told_by_name_and_stays_and_the_others_have_their_upkeep(
    kind: str, damaged: Callable[[bytes], bytes]
) -> None:
    if (kind, damaged) == ("names", of_a_later_version):
        damaged = malformed  # commits of names have no version: an operation that is not known does not parse
    scene, report = asyncio.run(_beside(SCENES[kind], kind, damaged))
    assert report.failed is None
    assert scene.well(report), report
    if kind in OPENS_NOTHING:
        return
    assert scene.bad in scene.store._objects
    (trouble,) = [text for text in report.trouble if scene.bad in text]
    assert "run arco verify" in trouble or "run pip install --upgrade arco" in trouble


def test_where_the_history_of_a_table_cannot_be_read_its_files_stay_and_it_is_told() -> None:
    scene, report = asyncio.run(_beside(history, "metadata", malformed))
    assert (report.failed, scene.well(report)) == (None, True)
    assert any(scene.bad in text and "run arco verify" in text for text in report.trouble)


async def _beside(
    made: Callable[[], Awaitable[Scene]], kind: str, damaged: Callable[[bytes], bytes]
) -> tuple[Scene, Report]:
    scene = await made()
    _damage(scene.store, scene.bad, damaged)
    catalog = Catalog.open(scene.store, "file:///lake", SCOPE, scene.store._clock, SeededEntropy("keeper"))
    (report,) = await upkeep_pass(Setting(catalog.parts), jobs_named([kind]))
    return scene, report


def _damage(store: MemoryStore, key: str, damaged: Callable[[bytes], bytes]) -> None:
    """Other bytes in an object of the same age."""
    before = store._objects.get(key)
    store._store(key, damaged(b"" if before is None else before.data))
    if before is not None:
        after = store._objects[key]
        store._objects[key] = replace(after, info=replace(after.info, modified_ms=before.info.modified_ms))


async def _two_tables(**properties: str) -> tuple[UpkeepGround, list[Table]]:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    tables = [Table(ground, server, name) for name in ("a", "b")]
    for number, table in enumerate(tables):
        await table.set(history_expire_max__snapshot__age__ms="1000", **properties)
        for snapshot in (1, 2):
            await table.publish(10 * number + snapshot)
    return ground, tables


async def _half_created(ground: UpkeepGround, name: str) -> list[str]:
    """The pointer and the first file of a table that never got its name."""
    server, before = ground.server(), ground.objects()
    held = server.line.delay("put", MANIFEST)
    await held.holds(server.create(name, f"half {name}"))
    server.line.cut()
    return [key for key in ground.objects() if key not in before and (POINTER in key or METADATA in key)]


async def _pointer(ground: UpkeepGround, server: Server, name: str) -> str:
    uuid = (await server.load(name)).uuid
    (key,) = [key for key in ground.objects(POINTER) if uuid in key]
    return key


async def _metadata(table: Table) -> str:
    return table.key((await table.server.catalog.tables.load(NAMESPACE, table.name))[1].location)
