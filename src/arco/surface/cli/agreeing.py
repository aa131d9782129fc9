"""The truths that `arco verify --state` holds the folded state against: pointers, names, logs of runs, and deployments."""

import asyncio
from collections.abc import Sequence

from arco.catalog.catalog import Catalog
from arco.catalog.model import Format, Kind
from arco.fold.heads import Heads
from arco.kernel.errors import Fenced, NotFound
from arco.kernel.ids import RunId
from arco.kernel.limits import PLANNING_READS_MAX
from arco.ledger.outstanding import run_ids
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import TaskStatus
from arco.read.agreement import Disagreement, RunTruth, Truths, disagreements
from arco.read.library import Binding, Library
from arco.servo.deploy.deploying import Deployments
from arco.storage.keys import DeploymentHeadKey, parse, prefix_of
from arco.storage.paging import walk
from arco.surface.cli.opening import Opened
from arco.surface.receipts import receipts_of


async def disagreements_of(at: Opened) -> tuple[Disagreement, ...]:
    """What the state, with all that is not folded yet, says otherwise than it is."""
    parts = at.catalog.parts
    heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    library = Library(heads, folder=at.folder, receipts=receipts_of(parts))
    try:
        # The truths first: what happens after them is only more than they say.
        tables, runs, assets = await _tables(at), await _runs(at.catalog), await _assets(at.catalog)
        # The names last: to load a table that is half dropped takes its name away.
        truths = Truths(tables, runs, assets, await _names(at))
        reader = (await library.open(Binding(fresh=True))).reader
        try:
            return tuple(await disagreements(reader, truths))
        finally:
            reader.close()
    finally:
        library.close()


async def _tables(at: Opened) -> dict[str, str]:
    names = await at.inventory.names()
    found: dict[str, str] = {}
    for entry in names.entries.values():
        if entry.kind is not Kind.TABLE or entry.format is not Format.ICEBERG:
            continue
        try:
            _, base = await at.catalog.tables.load(entry.namespace, entry.name)
        except NotFound:
            continue  # dropped or renamed meanwhile
        found[entry.uuid] = base.location
    return found


async def _names(at: Opened) -> dict[str, str]:
    return {entry.uuid: entry.full_name for entry in (await at.inventory.names()).entries.values()}


async def _runs(catalog: Catalog) -> dict[str, RunTruth]:
    parts = catalog.parts
    ids = await run_ids(parts.tier1.store, parts.scope)
    found: dict[str, RunTruth] = {}
    for start in range(0, len(ids), PLANNING_READS_MAX):
        some = ids[start : start + PLANNING_READS_MAX]
        for run, truth in zip(some, await _truths(catalog, some), strict=True):
            if truth is not None:
                found[str(run)] = truth
    return found


async def _truths(catalog: Catalog, ids: Sequence[RunId]) -> list[RunTruth | None]:
    return list(await asyncio.gather(*(_run(catalog, run) for run in ids)))


async def _run(catalog: Catalog, run: RunId) -> RunTruth | None:
    parts = catalog.parts
    try:
        log, _ = await RunLog.open(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
    except (NotFound, Fenced):
        return None
    if not log.state.is_finished:
        return None
    published = (its.materialization_id for its in log.state.tasks.values() if its.status is TaskStatus.SUCCEEDED)
    return RunTruth(log.state.run.status.value, frozenset(one for one in published if one is not None))


async def _assets(catalog: Catalog) -> dict[str, str]:
    parts = catalog.parts
    deployments = Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    found: dict[str, str] = {}
    async for entry in walk(parts.tier1.store, prefix_of(parts.scope, "_catalog", "deployments", "heads")):
        key = parse(entry.key)
        current = await deployments.current(str(key.project)) if isinstance(key, DeploymentHeadKey) else None
        if current is not None:
            found |= {one.asset_id: one.key for one in current.assets.values()}
    return found
