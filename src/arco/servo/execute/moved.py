"""Whether a plan still stands on what is there: the tables that it reads and writes, and the files that it takes.

The failure this prevents, in order:
  1. a plan is made, shown, and waits for somebody or something
  2. another run publishes what it reads, or what it was going to make
  3. the plan is started, and makes from old versions what the next plan finds stale at once
So whoever starts a plan looks first. A publish moves its table, so tables tell all that events would; a look costs what loading
them costs, and they are mostly known by then. What must never enter: planning anew; that is the caller's.
"""

import asyncio
from collections.abc import Iterable, Mapping

from arco.catalog.catalog import Catalog
from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import NoSuchTable
from arco.kernel.limits import PLANNING_READS_MAX
from arco.kernel.scope import Scope
from arco.servo.execute.input_files import list_files
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.sdk.definitions import InputKind
from arco.servo.sdk.project import Project
from arco.servo.sdk.tables import table_of


async def moved_since(
    catalog: Catalog, project: Project, plan: Plan, snapshot: PlanningSnapshot, options: Mapping[str, str]
) -> list[str]:
    """The assets that a plan makes or reads and that are not any more what it takes them for, by their keys."""
    turns = asyncio.Semaphore(PLANNING_READS_MAX)

    async def has_moved(key: str) -> bool:
        async with turns:
            return await _has_moved(catalog, project, key, snapshot)

    touched = sorted(_touched(plan.spec.tasks))
    found = await asyncio.gather(*map(has_moved, touched))
    made = {task.asset for task in plan.spec.tasks}
    others = _with_other_files(project, made, snapshot, options)
    return sorted({key for key, moved in zip(touched, found, strict=True) if moved} | others)


def _touched(tasks: Iterable[PlannedTask]) -> set[str]:
    return {task.asset for task in tasks} | {one.asset for task in tasks for one in task.inputs if one.asset is not None}


async def _has_moved(catalog: Catalog, project: Project, key: str, snapshot: PlanningSnapshot) -> bool:
    known = snapshot.of(key).table
    where = catalog.beside(Scope.parse_warehouse(known.workspace)) if known is not None and known.workspace else catalog
    try:
        _, base = await where.tables.load(*table_of(project.assets[AssetKey.parse(key)]))
    except NoSuchTable:
        return known is not None
    now = base.metadata
    return known is None or (known.table_uuid, known.snapshot_id) != (now.table_uuid, now.current_snapshot_id)


def _with_other_files(
    project: Project, made: Iterable[str], snapshot: PlanningSnapshot, options: Mapping[str, str]
) -> set[str]:
    """The assets whose `files(…)` are others now."""
    found = set()
    for key in made:
        known = snapshot.of(key).files
        for one in project.assets[AssetKey.parse(key)].inputs:
            if one.kind is InputKind.FILES and one.path is not None:
                now = list_files(one.path, project.folder, options)
                if one.parameter not in known or known[one.parameter].fingerprint != now.fingerprint:
                    found.add(key)
    return found
