"""Why a partition has to be made again: a pure function of recorded facts, never of timestamps alone.

For every partition the first of these that holds is its reason:

  never         it was never published
  layout        what was published belongs to an earlier partitioning, which says nothing of today's partitions
  code          it was published by other code, or with other parameters
  input         a partition it reads has another version now, is gone, or is new
  upstream      a partition it reads is going to be made in this very plan
  quarantined   its last output was held back
  deadline      it was published longer ago than the asset may be stale
  forced        somebody asked for it
  whole         another partition of a table that is always replaced as a whole is made

The answer is made of ranges: one reason for a year of days costs as much as one for a day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from arco.kernel.asset_key import AssetKey
from arco.kernel.partition_key import Scalar
from arco.servo.partitions.axes import ListAxis
from arco.servo.partitions.mappings import Ends, Last, Window
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import Layer, PartitionSet
from arco.servo.plan.deferral import lent_by
from arco.servo.plan.facts import AssetFacts, HeldOutput, Materialization, PlanningSnapshot, QuarantineWord
from arco.servo.plan.needs import AllNeeds, Needs
from arco.servo.plan.versions import Versions
from arco.servo.plan.writing import Scribe
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind, WriteMode
from arco.servo.sdk.graph import Graph


class Reason(StrEnum):
    NEVER = "never"
    LAYOUT = "layout"
    CODE = "code"
    INPUT = "input"
    UPSTREAM = "upstream"
    QUARANTINED = "quarantined"
    DEADLINE = "deadline"
    FORCED = "forced"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Stale:
    """Some partitions and why. `detail` is the fact that differs, for people."""

    partitions: PartitionSet
    reason: Reason
    detail: str


class World:
    """Definitions and facts together: what there is, what version everything has."""

    def __init__(self, graph: Graph, snapshot: PlanningSnapshot) -> None:
        self.graph = graph
        self.snapshot = snapshot
        self._partitioning = {
            key: asset.partitions.with_values(snapshot.of(key).dynamic) for key, asset in graph.assets.items()
        }
        self._everything = {key: one.everything(snapshot.at_ms) for key, one in self._partitioning.items()}
        self.planned: dict[AssetKey, PartitionSet] = {}
        """What is made of assets before whatever is asked about next: added as a plan goes downstream."""
        self._versions: dict[AssetKey, Versions] = {}
        self._scribes: dict[Partitioning, Scribe] = {}
        self._ends: dict[tuple[AssetKey, AssetKey, bool], Ends] = {}
        self._all_needs = AllNeeds()
        self._needs: dict[tuple[AssetKey, str, AssetKey], Needs] = {}
        self._written: dict[tuple[AssetKey, Layer], list[dict[str, Any]]] = {}

    def partitioning(self, key: AssetKey) -> Partitioning:
        return self._partitioning[key]

    def scribe(self, key: AssetKey) -> Scribe:
        """What writes and reads sets of an asset's partitions; assets that are partitioned alike share it."""
        partitioning = self._partitioning[key]
        if partitioning not in self._scribes:
            self._scribes[partitioning] = Scribe(partitioning)
        return self._scribes[partitioning]

    def everything(self, key: AssetKey) -> PartitionSet:
        return self._everything[key]

    def versions(self, key: AssetKey) -> Versions:
        """What every partition of an asset is now."""
        if key not in self._versions:
            self._versions[key] = self._read_versions(key)
        return self._versions[key]

    def _read_versions(self, key: AssetKey) -> Versions:
        facts, scribe = self.snapshot.of(key), self.scribe(key)
        if self.graph.assets[key].is_source or (lent_by(self.snapshot, key) and not facts.materializations):
            if facts.table is None:
                return Versions(scribe.axes)
            if facts.table.versions is not None:
                return Versions.read(scribe, facts.table.versions)
            return Versions(scribe.axes, ((self.everything(key), f"snapshot {facts.table.snapshot_id}"),))
        # A publish that replaces everything leaves nothing of those before it, whatever its partitions.
        is_whole = self.graph.assets[key].write.mode is WriteMode.FULL
        made = facts.materializations[-1:] if is_whole else facts.materializations
        return Versions.of(scribe.axes, ((scribe.read(one.partitions), one.id) for one in made))

    def versions_of(self, key: AssetKey, partitions: PartitionSet) -> list[dict[str, Any]]:
        """What some partitions are now, as a document that nobody may change: asked of the past, and again for the tasks."""
        versions = self.versions(key)
        if not versions.pieces:
            return []
        if len(partitions.ranges) != 1:
            return versions.within(partitions).document(self.scribe(key))
        found = self._written.get((key, partitions.ranges))
        if found is None:
            found = versions.within(partitions).document(self.scribe(key))
            self._written[key, partitions.ranges] = found
        return found

    def present(self, key: AssetKey) -> PartitionSet:
        """What can be read of an asset now."""
        return self.versions(key).covered()

    def ends(self, one: InputDefinition, reader: AssetKey) -> Ends:
        upstream = one.asset
        assert upstream is not None  # noqa: S101 - only asked for inputs that are assets
        is_last = isinstance(one.mapping, Last)
        found = self._ends.get((upstream, reader, is_last))
        if found is None:
            whole = self.readable(upstream) if is_last else self.everything(upstream)
            found = self._ends[upstream, reader, is_last] = Ends(
                self.partitioning(upstream), self.partitioning(reader), whole, self.everything(reader)
            )
        return found

    def readable(self, key: AssetKey) -> PartitionSet:
        """What there is to read of an asset when its readers are made. The newest period of all may not be there yet."""
        there = self.present(key) | self.planned.get(key, PartitionSet.nothing(len(self.partitioning(key).axes)))
        return there & self.everything(key)

    def needs(self, one: InputDefinition, reader: AssetKey) -> Needs:
        """What partitions of a reader need of an input that is an asset."""
        upstream = one.asset
        assert upstream is not None  # noqa: S101 - as above
        found = self._needs.get((upstream, one.parameter, reader))
        if found is None:
            ends = self.ends(one, reader)
            found = self._all_needs.between(one.mapping, ends, self.scribe(upstream))
            self._needs[upstream, one.parameter, reader] = found
        return found

    def current(self, key: AssetKey) -> Iterator[tuple[Materialization, PartitionSet]]:
        """Every materialization with what it still stands for."""
        by_id = {one.id: one for one in self.snapshot.of(key).materializations}
        for partitions, version in self.versions(key).pieces:
            yield by_id[version], partitions

    def is_laid_out_anew(self, key: AssetKey) -> bool:
        """Whether the last publish of an asset belongs to an earlier partitioning."""
        made = self.snapshot.of(key).materializations
        return bool(made) and not self.partitioning(key).is_of_today(made[-1].partitions)

    def held(self, key: AssetKey) -> Iterator[tuple[HeldOutput, PartitionSet]]:
        """Every output that was held back, with the partitions that nothing was published for since."""
        facts, partitioning = self.snapshot.of(key), self.partitioning(key)
        for one in facts.held:
            left = partitioning.recorded(one.partitions)
            for made in facts.materializations:
                if made.position > one.position:
                    left -= partitioning.recorded(made.partitions)
            if left:
                yield one, left

    def quarantined(self, key: AssetKey) -> Iterator[tuple[QuarantineWord, PartitionSet]]:
        """What people hold back by hand of what can be read of an asset, by the last word about each partition."""
        partitioning, left = self.partitioning(key), self.present(key)
        for word in reversed(self.snapshot.of(key).quarantined):
            meant = partitioning.recorded(word.partitions) & left
            if word.materialization_id is not None:
                own = (part for part, version in self.versions(key).pieces if version == word.materialization_id)
                meant &= PartitionSet.union(len(partitioning.axes), own)
            left -= meant
            if meant and word.quarantined:
                yield word, meant


def stale(
    world: World,
    key: AssetKey,
    wanted: PartitionSet,
    *,
    force: bool,
    due_by_ms: int | None = None,
) -> list[Stale]:
    """What of `wanted` has to be made, each partition once, with the first reason that holds."""
    found: list[Stale] = []
    left = wanted
    for one in (*_candidates(world, key, wanted), *_asked_for(world, key, wanted, due_by_ms, force=force)):
        part = one.partitions & left
        if part:
            found.append(Stale(part, one.reason, one.detail))
            left -= part
    return [*found, *_beside(world, key, found)]


def _beside(world: World, key: AssetKey, found: list[Stale]) -> Iterator[Stale]:
    """What else is made of a table that is replaced as a whole: what is left out would be lost, and count as published."""
    if found and world.graph.assets[key].write.mode is WriteMode.FULL:
        everything = world.everything(key)
        rest = everything - PartitionSet.union(everything.axes, (one.partitions for one in found))
        if rest:
            yield Stale(rest, Reason.WHOLE, "the table is replaced as a whole")


def _candidates(world: World, key: AssetKey, wanted: PartitionSet) -> Iterator[Stale]:
    asset, facts = world.graph.assets[key], world.snapshot.of(key)
    current = list(world.current(key))
    missing = wanted - world.present(key)
    if world.is_laid_out_anew(key):
        yield Stale(missing, Reason.LAYOUT, "what is published belongs to an earlier partitioning")
    yield Stale(missing, Reason.NEVER, "never published")
    for one, partitions in current:
        yield from _other_code(asset, one, partitions)
    for one, partitions in current:
        yield from _other_inputs(world, asset, facts, one, partitions)
    for given, upstream in world.graph.inputs(key):
        made = world.planned.get(upstream.key)
        if made and given.kind is not InputKind.CHECK:
            touched = given.mapping.touched(made, world.ends(given, key))
            yield Stale(touched, Reason.UPSTREAM, f"{upstream.key} is made in this plan")
    for kept, partitions in world.held(key):
        yield Stale(
            partitions, Reason.QUARANTINED, f"the last output was held back: {', '.join(kept.reasons) or kept.action}"
        )


def _asked_for(world: World, key: AssetKey, wanted: PartitionSet, due_by_ms: int | None, *, force: bool) -> Iterator[Stale]:
    """What is too old, or will be at the moment that is asked about; and what is made whatever it is."""
    within_s, now_ms = world.graph.assets[key].fresh_within_s, world.snapshot.at_ms
    for one, partitions in world.current(key) if within_s is not None else ():
        age_s = (now_ms - one.published_ms) // 1000
        if age_s > (within_s or 0):
            yield Stale(partitions, Reason.DEADLINE, f"published {age_s} s ago, fresh within {within_s} s")
        elif due_by_ms is not None and (due_by_ms - one.published_ms) // 1000 > (within_s or 0):
            left_s = (within_s or 0) - age_s
            yield Stale(partitions, Reason.DEADLINE, f"fresh for {left_s} s more, and it has to be made before")
    if force:
        yield Stale(wanted, Reason.FORCED, "asked for")


def _other_code(asset: AssetDefinition, one: Materialization, partitions: PartitionSet) -> Iterator[Stale]:
    if one.code != asset.fingerprint:
        yield Stale(partitions, Reason.CODE, f"published by code {one.code[:12]}, now {asset.fingerprint[:12]}")


def _other_inputs(
    world: World, asset: AssetDefinition, facts: AssetFacts, one: Materialization, partitions: PartitionSet
) -> Iterator[Stale]:
    for given in asset.inputs:
        if given.kind is InputKind.CHECK:
            continue
        recorded = one.inputs.get(given.parameter)
        if given.kind is InputKind.FILES:
            now = facts.files.get(given.parameter)
            before = recorded[0]["version"] if recorded else None
            if now is not None and now.fingerprint != before:
                yield Stale(partitions, Reason.INPUT, f"the files of {given.parameter} are others now")
            continue
        upstream = given.asset
        if upstream is None:
            continue
        if recorded is None:
            yield Stale(partitions, Reason.INPUT, f"{given.parameter} was not read before")
            continue
        for part, said in _differing(world, given, upstream, asset.key, recorded, partitions):
            yield Stale(part & partitions, Reason.INPUT, f"{upstream} changed: {said}")


def _differing(
    world: World,
    given: InputDefinition,
    upstream: AssetKey,
    reader: AssetKey,
    recorded: list[dict[str, Any]],
    partitions: PartitionSet,
) -> Iterator[tuple[PartitionSet, str]]:
    """What read upstream partitions that are not what they were, or are none any more; each with which those are."""
    scribe = world.scribe(upstream)
    needed, _ = world.needs(given, reader).of(partitions)
    if _says_the_same(world.versions_of(upstream, needed), recorded):  # usual, and found without reading what was recorded
        return
    then, now = Versions.read(scribe, recorded), world.versions(upstream).within(needed)
    differing = then.within(needed).differing(now) | (then.covered() - world.everything(upstream))
    if differing:
        yield given.mapping.touched(differing, world.ends(given, reader)), scribe.partitioning.text(differing)
    gone = scribe.partitioning.gone(one["partitions"] for one in recorded)
    for name, values in gone.items():
        is_same = isinstance(given.mapping, Window)
        yield _of_values(world, reader, name, values if is_same else None), f"{name} {values[0]} is no partition any more"


def _of_values(world: World, key: AssetKey, name: str, values: list[Scalar] | None) -> PartitionSet:
    """The partitions of an asset with some values of a dimension; all of them, if it has no list of that name."""
    partitioning, everything = world.partitioning(key), world.everything(key)
    for place, axis in enumerate(partitioning.axes):
        if values is not None and axis.name == name and isinstance(axis, ListAxis):
            known = [at for at, one in enumerate(axis.values) if one in values]
            boxes = [[*box[:place], (at, at + 1), *box[place + 1 :]] for box in everything.boxes() for at in known]
            return PartitionSet.of(everything.axes, boxes)
    return everything


def _says_the_same(one: list[dict[str, Any]], other: list[dict[str, object]]) -> bool:
    """Whether two documents of versions have the same entries, in whichever order."""
    if one == other:
        return True
    mine, theirs = ({entry["version"]: entry["partitions"] for entry in entries} for entries in (one, other))
    return mine == theirs and len(mine) == len(one) == len(other)
