"""What one asset is now, range by range: fresh, since when and from what; or stale, and the first fact that differs.

It walks the same rules as the planner, for the asset and everything upstream of it, so what is explained is what would run. Pure:
definitions and one planning snapshot, nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from arco.kernel.asset_key import AssetKey
from arco.ledger.execution_events import CheckFacts
from arco.servo.partitions.axes import ListAxis
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.deferral import lent_by
from arco.servo.plan.document import PlanSpec
from arco.servo.plan.staleness import Reason, Stale, World, stale
from arco.servo.sdk.definitions import InputDefinition


class Fresh(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions that are as their inputs and their code are now, and the publish that made them."""

    partitions: list[dict[str, Any]]
    text: str
    materialization_id: str
    run_id: str
    snapshot_id: int | None
    published_ms: int
    code: str
    checks_failed: tuple[str, ...] = ()
    checks: tuple[CheckFacts, ...] = ()


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions that have to be made again, and the first fact that differs. `published` if an older version can be read."""

    partitions: list[dict[str, Any]]
    text: str
    reason: str
    detail: str
    published: bool


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """One input as it is now."""

    parameter: str
    kind: str
    asset: str | None
    mapping: str
    snapshot_id: int | None
    text: str
    versions: int
    note: str = ""
    workspace: str = ""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An output that was held back and not replaced since."""

    partitions: list[dict[str, Any]]
    text: str
    run_id: str
    action: str
    reasons: tuple[str, ...]
    branch: str | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one asset. `needs` are the assets upstream that are stale themselves."""

    asset: str
    kind: str
    where: str
    description: str
    code: str
    snapshot_id: int | None
    partitions: int
    published: int
    fresh: tuple[Fresh, ...]
    stale: tuple[Differs, ...]
    inputs: tuple[Reads, ...]
    held: tuple[Held, ...]
    needs: tuple[str, ...]
    notes: tuple[str, ...]


def explain(world: World, key: AssetKey, partitions: Mapping[str, str]) -> Explanation:
    """Explain an asset, or those of its partitions that are asked for."""
    asset, partitioning = world.graph.assets[key], world.partitioning(key)
    wanted = partitioning.select(partitions, world.snapshot.at_ms)
    found, needs = _upstream_first(world, key, wanted)
    left = wanted - _whole(world, key, found)
    table, present = world.snapshot.of(key).table, world.present(key)
    return Explanation(
        asset=str(key),
        kind=asset.kind.value,
        where=str(asset.where),
        description=asset.description,
        code=asset.fingerprint,
        snapshot_id=None if table is None else table.snapshot_id,
        partitions=wanted.count(),
        published=(present & wanted).count(),
        fresh=() if asset.is_source else _fresh(world, key, left),
        stale=tuple(_differs(world, key, one, present) for one in found),
        inputs=tuple(_reads(world, key, one, wanted) for one in asset.inputs),
        held=_held(world, key, wanted),
        needs=tuple(str(one) for one in needs),
        notes=tuple(notes(world, key)),
    )


def notes(world: World, key: AssetKey) -> list[str]:
    """What is odd about an asset's table, and about the tables that it reads."""
    said = []
    table = world.snapshot.of(key).table
    if table is not None and table.external_commit:
        said.append(f"{key}: its table was last changed by somebody else, not by this asset")
    if world.is_laid_out_anew(key):
        said.append(
            f"{key}: it was partitioned otherwise when it was last published, so all of it is made again; rows outside what is"
            " made stay in its table, so drop the table first where none may"
        )
    said += _by_hand(world, key)
    for one, upstream in world.graph.inputs(key):
        said += _by_hand(world, upstream.key)
        theirs = world.snapshot.of(upstream.key).table
        if upstream.is_source and theirs is None:
            said.append(f"{upstream.key}: there is no such table yet, and {key} reads it as {one.parameter}")
        elif upstream.is_source and theirs is not None and theirs.note:
            said.append(f"{upstream.key}: {theirs.note}")
    return said


def without_partitions(world: World, spec: PlanSpec) -> dict[str, str]:
    """The assets of a plan that have none of the partitions that were asked for, each with which ones there are."""
    found = {}
    for name in spec.selection:
        key = AssetKey.parse(name)
        partitioning = world.partitioning(key)
        asked = {word: text for word, text in spec.partitions.items() if word in partitioning.names}
        if partitioning.select(asked, world.snapshot.at_ms):
            continue
        there, said = world.everything(key), ", ".join(f"{word}={text}" for word, text in asked.items())
        found[name] = (
            f"{name} has no partitions {said}: there are {partitioning.text(there)}"
            if there
            else f"{name}: {_none_yet(world, key)}"
        )
    return found


def _none_yet(world: World, key: AssetKey) -> str:
    for axis in world.partitioning(key).axes:
        if isinstance(axis, ListAxis) and not axis.values:
            return f"it has no partitions yet; arco partitions add {key} {axis.name} VALUE makes one"
    return "it has no partitions yet: its first period is not over"


def _by_hand(world: World, key: AssetKey) -> Iterator[str]:
    """What people hold back of an asset: it is read all the same, so whoever plans on it should know."""
    for word, partitions in world.quarantined(key):
        text = world.partitioning(key).text(partitions)
        yield f"{key}: {text}{', ' * bool(text)}quarantined by {word.who}: {word.why}"


def _upstream_first(world: World, key: AssetKey, wanted: PartitionSet) -> tuple[list[Stale], list[AssetKey]]:
    """What is stale of the asset, if everything upstream that is stale were made first; and what that is."""
    above = world.graph.upstream([key]) - {key}
    for one in world.graph.order:
        if one in above and not world.graph.assets[one].is_source and lent_by(world.snapshot, one) is None:
            whole = _whole(world, one, stale(world, one, world.everything(one), force=False))
            if whole:
                world.planned[one] = whole
    if world.graph.assets[key].is_source:
        return [], []
    found = stale(world, key, wanted, force=False)
    said = [
        Stale(one.partitions, one.reason, one.detail.replace("is made in this plan", "is stale itself"))
        if one.reason is Reason.UPSTREAM
        else one
        for one in found
    ]
    return said, list(world.planned)


def _whole(world: World, key: AssetKey, found: list[Stale]) -> PartitionSet:
    whole = PartitionSet.nothing(len(world.partitioning(key).axes))
    for one in found:
        whole |= one.partitions
    return whole


def _fresh(world: World, key: AssetKey, left: PartitionSet) -> tuple[Fresh, ...]:
    partitioning = world.partitioning(key)
    pieces = ((one, part & left) for one, part in world.current(key))
    return tuple(
        Fresh(
            partitions=partitioning.document(part),
            text=partitioning.text(part),
            materialization_id=one.id,
            run_id=one.run_id,
            snapshot_id=one.snapshot_id,
            published_ms=one.published_ms,
            code=one.code,
            checks_failed=one.checks_failed,
            checks=one.checks,
        )
        for one, part in pieces
        if part
    )


def _differs(world: World, key: AssetKey, one: Stale, present: PartitionSet) -> Differs:
    partitioning = world.partitioning(key)
    return Differs(
        partitions=partitioning.document(one.partitions),
        text=partitioning.text(one.partitions),
        reason=one.reason.value,
        detail=one.detail,
        published=bool(one.partitions & present),
    )


def _reads(world: World, key: AssetKey, one: InputDefinition, wanted: PartitionSet) -> Reads:
    if one.asset is None:
        listed = world.snapshot.of(key).files.get(one.parameter)
        count = 0 if listed is None else len(listed.files)
        return Reads(
            parameter=one.parameter,
            kind=one.kind.value,
            asset=None,
            mapping="all",
            snapshot_id=None,
            text=f"{one.path}: {count:,} file{'' if count == 1 else 's'}",
            versions=1,
        )
    upstream, table = world.partitioning(one.asset), world.snapshot.of(one.asset).table
    needed = one.mapping.needed(wanted, world.ends(one, key))
    found = world.versions(one.asset).within(needed)
    return Reads(
        parameter=one.parameter,
        kind=one.kind.value,
        asset=str(one.asset),
        mapping=one.mapping.describe(),
        snapshot_id=None if table is None else table.snapshot_id,
        text=upstream.text(found.covered()),
        versions=len(found.pieces),
        note="" if table is None else table.note,
        workspace="" if table is None else table.workspace,
    )


def _held(world: World, key: AssetKey, wanted: PartitionSet) -> tuple[Held, ...]:
    partitioning = world.partitioning(key)
    pieces = ((one, part & wanted) for one, part in world.held(key))
    return tuple(
        Held(
            partitions=partitioning.document(part),
            text=partitioning.text(part),
            run_id=one.run_id,
            action=one.action,
            reasons=one.reasons,
            branch=one.branch,
        )
        for one, part in pieces
        if part
    )
