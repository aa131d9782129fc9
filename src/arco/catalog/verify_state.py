"""The state as servers load it: the files of the last checkpoint, and the commits since, from the manifest's tail."""

import asyncio

from arco.catalog.manifest import Manifest, StateFile
from arco.catalog.names import Draft, Names
from arco.catalog.state_files import load_into
from arco.kernel.errors import ArcoError, CorruptObject
from arco.kernel.fingerprint import content_hash
from arco.storage.findings import Report
from arco.storage.port import ObjectStore

CHAIN_IS_WHOLE = "run arco verify --repair, which makes it again from the chain of commits"
CHAIN_IS_BROKEN = (
    "restore it from a backup or a copy of the root: the chain of commits is broken, and cannot say what it held"
)
_MANIFEST = "restore the manifest from a backup or a copy of the root"


async def load_state(store: ObjectStore, manifest: Manifest, report: Report, way_out: str = CHAIN_IS_WHOLE) -> Names | None:
    """The state; None if a file of it is missing or damaged, or the tail does not fit. `way_out`: what is said of damage."""
    before = len(report.findings)
    files = [*([manifest.base] if manifest.base else []), *manifest.deltas]
    bodies = await asyncio.gather(*(store.get(one.key) for one in files))
    names = Names()
    for file, found in zip(files, bodies, strict=True):
        _load(names, file, None if found is None else found.data, report, way_out)
    report.count("state_files", len(files))
    report.count("commits_in_the_tail", len(manifest.tail))
    _check_ranges(manifest, files, report)
    if len(report.findings) == before:
        _apply_tail(names, manifest, report)
    return names if len(report.findings) == before else None


def _load(names: Names, file: StateFile, data: bytes | None, report: Report, way_out: str) -> None:
    if data is None:
        report.find("state_missing", file.key, f"state file {file.key} is missing", way_out)
    elif content_hash(data) != file.checksum:
        report.find("state_altered", file.key, f"state file {file.key} does not match its checksum", way_out)
    else:
        try:
            load_into(names, data, file.checksum, file.key)
        except CorruptObject as error:
            report.find("state_unreadable", file.key, error.message, f"report this: it was written so; then {way_out}")


def _check_ranges(manifest: Manifest, files: list[StateFile], report: Report) -> None:
    """Files and tail together must cover every commit once."""
    reached = [file.up_to_sequence for file in files]
    if reached != sorted(reached) or (reached[-1] if reached else 0) != manifest.checkpointed_sequence:
        what = f"the manifest's files reach commits {reached}, its checkpoint says {manifest.checkpointed_sequence}"
        report.find("manifest_contradicts_itself", "manifest", what, _MANIFEST)
    tail = [commit.sequence for commit in manifest.tail]
    if tail != list(range(manifest.checkpointed_sequence + 1, manifest.sequence + 1)):
        first, last = manifest.checkpointed_sequence + 1, manifest.sequence
        what = f"the manifest's tail holds commits {_span(tail)}, it must hold {first} to {last}"
        report.find("manifest_contradicts_itself", "manifest", what, _MANIFEST)


def _apply_tail(names: Names, manifest: Manifest, report: Report) -> None:
    for commit in manifest.tail:
        draft = Draft(names)
        try:
            for operation in commit.operations:
                draft.apply(operation, commit.at_ms)
        except ArcoError as error:
            what = f"commit {commit.sequence} of the manifest's tail does not apply to the state ({error.message})"
            report.find("tail_does_not_apply", commit.id, what, _MANIFEST)
            return
        draft.merge()


def _span(numbers: list[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
