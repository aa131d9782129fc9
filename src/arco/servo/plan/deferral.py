"""Facts that come from another workspace, and what they may be used for: to be read from, never to be taken for one's own."""

from collections.abc import Collection

import msgspec

from arco.kernel.asset_key import AssetKey
from arco.servo.plan.facts import PlanningSnapshot, TableFact


def lent_by(snapshot: PlanningSnapshot, key: AssetKey | str) -> TableFact | None:
    """The table of another workspace that an asset is read from, if it is."""
    table = snapshot.of(key).table
    return table if table is not None and table.workspace else None


def for_making(snapshot: PlanningSnapshot, made: Collection[AssetKey]) -> PlanningSnapshot:
    """The facts for a plan that may make some assets: of those only what their own workspace has counts.

    Otherwise what is published elsewhere would pass for published here, and whoever reads it would read what nobody made.
    """
    borrowed = [str(key) for key in made if lent_by(snapshot, key) is not None]
    if not borrowed:
        return snapshot
    own = {key: msgspec.structs.replace(snapshot.assets[key], materializations=(), table=None, held=()) for key in borrowed}
    return msgspec.structs.replace(snapshot, assets={**snapshot.assets, **own})
