"""What the tasks of a plan need of pools: what their assets ask for by name, and how often an asset may run at once.

A name that no pool has is no limit: it stands in the plan for whoever reads it.
"""

from collections.abc import Mapping

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.servo.plan.document import Plan
from arco.servo.schedule.pools import Need
from arco.servo.sdk.project import Project


def needs_of(project: Project, plan: Plan, pools: Mapping[str, float]) -> dict[str, tuple[Need, ...]]:
    """By task; nothing for tasks that need nothing."""
    found = {}
    for task in plan.spec.tasks:
        needs = [_need(task.asset, name, pools[name], units) for name, units in task.resources.items() if name in pools]
        asset = project.assets.get(AssetKey.parse(task.asset))
        if asset is not None and asset.concurrency is not None:
            needs.append(Need(f"asset {task.asset}", float(asset.concurrency)))
        needs = [need for need in needs if need.units > 0]
        if needs:
            found[task.id] = tuple(needs)
    return found


def _need(asset: str, name: str, size: float, units: float) -> Need:
    if units > size:
        raise InvalidInput(
            f"{asset} asks for {units:g} of pool {name}, which has {size:g}",
            hint="make the pool larger under [pools] in arco.toml, or ask for less",
        )
    return Need(f"pool {name}", size, units)
