"""What has to be made again before it is older than it may be, and when to begin: deadline minus estimated duration.

A pure function of recorded facts. The deadline of an asset is that of its oldest partition that can be read: when it was
published, plus `fresh_within`. What was never published is due at once. The duration is the longest of the last few that stand,
and those of everything that it is made of before it, one after the other: too early is better than too late. What must never
enter: a clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arco.kernel.asset_key import AssetKey
from arco.kernel.limits import SCHEDULE_ESTIMATED_RUNS_MAX
from arco.servo.plan.facts import Materialization
from arco.servo.plan.staleness import World


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when an asset is fresh, and when to begin so that it stays so. `because` are the publishes that get old first."""

    asset: AssetKey
    fresh_until_ms: int
    begin_ms: int
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Urgent:
    """What is to be made now. Asked for again on the same facts only after `again_after_s`."""

    assets: tuple[str, ...]
    published: tuple[str, ...]
    due_by_ms: int
    again_after_s: int
    cause: str


def urgent(world: World, assets: Iterable[AssetKey]) -> Urgent | None:
    """What of some assets must be begun at the moment of the facts, if anything."""
    now_ms = world.snapshot.at_ms
    due = [one for one in deadlines(world, assets) if one.begin_ms <= now_ms]
    if not due:
        return None
    within = [world.graph.assets[one.asset].fresh_within_s or 0 for one in due]
    return Urgent(
        assets=tuple(str(one.asset) for one in due),
        published=tuple(said for one in due for said in one.because),
        due_by_ms=max(one.fresh_until_ms for one in due) + 1000,
        again_after_s=min(within),
        cause=f"{', '.join(str(one.asset) for one in due)} would not be fresh in time",
    )


def deadlines(world: World, assets: Iterable[AssetKey]) -> list[Deadline]:
    """The deadlines of some assets, the first to begin with first. One that is kept fresh by nobody has none."""
    durations = durations_ms(world)
    found = [_deadline(world, key, durations) for key in sorted(assets)]
    return sorted((one for one in found if one is not None), key=lambda one: (one.begin_ms, one.asset))


def durations_ms(world: World) -> dict[AssetKey, int]:
    """How long it takes to make each asset together with everything that it needs."""
    found: dict[AssetKey, int] = {}
    for key in world.graph.order:
        before = max((found[upstream.key] for _, upstream in world.graph.inputs(key)), default=0)
        found[key] = before + _own_ms(world.snapshot.of(key).materializations)
    return found


def _own_ms(made: tuple[Materialization, ...]) -> int:
    took = [one.published_ms - one.started_ms for one in made if one.started_ms is not None]
    return max((one for one in took[-SCHEDULE_ESTIMATED_RUNS_MAX:] if one > 0), default=0)


def _deadline(world: World, key: AssetKey, durations: Mapping[AssetKey, int]) -> Deadline | None:
    within_s = world.graph.assets[key].fresh_within_s
    if within_s is None:
        return None
    now_ms = world.snapshot.at_ms
    missing = world.everything(key) - world.present(key)
    if missing:
        text = f"{key} never {world.partitioning(key).text(missing)}"
        return Deadline(key, now_ms, now_ms, (text,))
    current = [one for one, _ in world.current(key)]
    if not current:
        return None
    oldest_ms = min(one.published_ms for one in current)
    until_ms = oldest_ms + within_s * 1000
    first = tuple(sorted(one.id for one in current if one.published_ms == oldest_ms))
    return Deadline(key, until_ms, until_ms - durations[key], first)
