"""Manifests and manifest lists through the store: read side by side, written once, never changed.

PyIceberg makes and reads their bytes, in memory; the store's own rules (create only if absent, read back after a lost reply)
hold for them as for every other object. What must never enter: what is in them.
"""

import asyncio
from collections.abc import Iterable, Mapping

from pyiceberg.manifest import ManifestEntry, ManifestFile, _inherit_from_manifest

from arco.catalog.workspace import Workspace
from arco.iceberg import manifest_files
from arco.kernel.errors import BrokenInvariant, OutcomeUnknown
from arco.kernel.ids import clip
from arco.servo.execute.located import read_located
from arco.servo.execute.table_state import TableState
from arco.storage.port import Absent, Landed, Lost
from arco.storage.readback import put_settled

# Requests under way at once for one table.
_AT_ONCE = 16


class TableFiles:
    """The files of the tables of one workspace, by location."""

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace

    async def manifests(self, state: TableState) -> list[ManifestFile]:
        """The manifests of a snapshot."""
        if state.snapshot is None:
            return []
        location = str(state.snapshot["manifest-list"])
        return manifest_files.manifests_in(await read_located(self._ws, location), location)

    async def entries(self, manifests: Iterable[ManifestFile]) -> dict[str, list[ManifestEntry]]:
        """The entries of manifests by the manifest's path, those of removed files among them."""
        wanted = list(manifests)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(manifest: ManifestFile) -> list[ManifestEntry]:
            async with turns:
                return entries_in(manifest, await read_located(self._ws, manifest.manifest_path))

        found = await asyncio.gather(*(one(manifest) for manifest in wanted))
        return {manifest.manifest_path: entries for manifest, entries in zip(wanted, found, strict=True)}

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Write new files; a name that is taken is a bug, for no name is ever made twice."""
        await asyncio.gather(*(self._write(location, data) for location, data in files.items()))

    async def _write(self, location: str, data: bytes) -> None:
        clock, entropy = self._ws.clock, self._ws.entropy
        store, key = self._ws.files.where(location)
        match await put_settled(store, key, data, Absent(), clock=clock, entropy=entropy):
            case Landed():
                return
            case Lost(reason):
                raise BrokenInvariant(f"{clip(location, 300)} exists already: {reason}")
            case unknown:
                raise OutcomeUnknown(f"{clip(location, 300)} could not be written: {unknown.reason}")


def entries_in(manifest: ManifestFile, data: bytes) -> list[ManifestEntry]:
    """The entries of a manifest that was read, with what they inherit from it."""
    found = manifest_files.entries_in(data, manifest.manifest_path)
    return [_inherit_from_manifest(entry, manifest) for entry in found]
