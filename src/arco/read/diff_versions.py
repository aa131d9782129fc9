"""Two versions of one partition compared: what it held, with which columns, by which code, and what it was made of."""

from datetime import datetime

import msgspec

from arco.kernel.errors import NotFound
from arco.read.answers import Answer
from arco.read.partitions import Version, versions
from arco.read.reader import Reader


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    before: int | None
    after: int | None
    change: int | None


class InputChange(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of an input that differs; null where it was not read."""

    before: int | None
    after: int | None


class VersionDiff(Answer, frozen=True, kw_only=True):
    """From one version to another. `code_changed` speaks of the asset's own code, `code_version` of the project's."""

    asset: str
    asset_id: str
    partition_key: str
    before: Version
    after: Version
    rows: Measure
    bytes: Measure
    files: Measure
    schema_changed: bool
    code_changed: bool
    code_version_changed: bool
    table_changed: bool
    inputs: dict[str, InputChange]
    checks_failed_before_only: tuple[str, ...]
    checks_failed_after_only: tuple[str, ...]
    between_s: float | None


async def version_diff(reader: Reader, asked: str, key: str, before: str, after: str) -> VersionDiff:
    """Two versions of a partition, by their numbers or their materialization ids."""
    history = await versions(reader, asked, key)
    here, there = _chosen(history.versions, before), _chosen(history.versions, after)
    return VersionDiff(
        snapshot_id=reader.cut.snapshot_id,
        asset=history.asset,
        asset_id=history.asset_id,
        partition_key=history.partition_key,
        before=here,
        after=there,
        rows=_measure(here.rows, there.rows),
        bytes=_measure(here.bytes, there.bytes),
        files=_measure(here.files, there.files),
        schema_changed=(here.table_uuid, here.schema_id) != (there.table_uuid, there.schema_id),
        code_changed=here.code != there.code,
        code_version_changed=here.code_version != there.code_version,
        table_changed=here.table_uuid != there.table_uuid,
        inputs=_inputs(here, there),
        checks_failed_before_only=tuple(sorted(set(here.checks_failed) - set(there.checks_failed))),
        checks_failed_after_only=tuple(sorted(set(there.checks_failed) - set(here.checks_failed))),
        between_s=_seconds(here.published_at, there.published_at),
    )


def _chosen(known: tuple[Version, ...], asked: str) -> Version:
    for one in known:
        if asked in {str(one.number), one.materialization_id}:
            return one
    numbers = ", ".join(str(one.number) for one in known[:10])
    raise NotFound(f"there is no version {asked!r} of it", hint=f"there are {numbers}, or name a materialization")


def _measure(before: int | None, after: int | None) -> Measure:
    change = None if before is None or after is None else after - before
    return Measure(before=before, after=after, change=change)


def _inputs(before: Version, after: Version) -> dict[str, InputChange]:
    names = sorted(before.input_snapshots.keys() | after.input_snapshots.keys())
    found = {
        name: InputChange(before=before.input_snapshots.get(name), after=after.input_snapshots.get(name)) for name in names
    }
    return {name: change for name, change in found.items() if change.before != change.after}


def _seconds(before: datetime | None, after: datetime | None) -> float | None:
    return None if before is None or after is None else (after - before).total_seconds()
