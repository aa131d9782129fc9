"""Manifests and manifest lists through the store: read side by side, written once, never changed.

PyIceberg makes and reads their bytes, in memory; the store's own rules (create only if absent, read back after a lost reply)
hold for them as for every other object. What must never enter: what is in them.
"""

import asyncio
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
    read_manifest_list,
)

from arco.catalog.workspace import Workspace
from arco.kernel.errors import BrokenInvariant, InvalidInput, NotFound, OutcomeUnknown
from arco.kernel.ids import clip
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
        return list(read_manifest_list(HeldFile(location, await self._read(location))))

    async def entries(self, manifests: Iterable[ManifestFile]) -> dict[str, list[ManifestEntry]]:
        """The entries of manifests by the manifest's path, those of removed files among them."""
        wanted = list(manifests)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(manifest: ManifestFile) -> list[ManifestEntry]:
            async with turns:
                return entries_in(manifest, await self._read(manifest.manifest_path))

        found = await asyncio.gather(*(one(manifest) for manifest in wanted))
        return {manifest.manifest_path: entries for manifest, entries in zip(wanted, found, strict=True)}

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Write new files; a name that is taken is a bug, for no name is ever made twice."""
        await asyncio.gather(*(self._write(location, data) for location, data in files.items()))

    async def _read(self, location: str) -> bytes:
        found = await self._ws.tier1.store.get(self._key(location))
        if found is None:
            raise NotFound(f"{clip(location, 300)} is gone", hint="a file of this table was removed by somebody else")
        return found.data

    async def _write(self, location: str, data: bytes) -> None:
        store, clock, entropy = self._ws.tier1.store, self._ws.clock, self._ws.entropy
        match await put_settled(store, self._key(location), data, Absent(), clock=clock, entropy=entropy):
            case Landed():
                return
            case Lost(reason):
                raise BrokenInvariant(f"{clip(location, 300)} exists already: {reason}")
            case unknown:
                raise OutcomeUnknown(f"{clip(location, 300)} could not be written: {unknown.reason}")

    def _key(self, location: str) -> str:
        key = self._ws.locations.key(location)
        if key is None:
            raise InvalidInput(f"{clip(location, 300)} lies outside the root", hint="publish to a table inside it")
        return key


def entries_in(manifest: ManifestFile, data: bytes) -> list[ManifestEntry]:
    """The entries of a manifest that was read, with what they inherit from it."""
    with AvroFile[ManifestEntry](
        HeldFile(manifest.manifest_path, data),
        MANIFEST_ENTRY_SCHEMAS[2],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        return [_inherit_from_manifest(entry, manifest) for entry in reader]


class HeldFile(InputFile):
    """Bytes that were read already, for PyIceberg."""

    def __init__(self, location: str, data: bytes) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:  # noqa: FBT001 - PyIceberg's signature
        return BytesIO(self._data)


class MadeFile(OutputFile):
    """Bytes that PyIceberg makes, kept until they are written."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.data = b""

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return HeldFile(self.location, self.data)

    def create(self, overwrite: bool = False) -> Any:  # noqa: FBT001 - PyIceberg's signature
        return _Keeping(self)


class _Keeping(BytesIO):
    def __init__(self, file: MadeFile) -> None:
        super().__init__()
        self._file = file

    def close(self) -> None:
        if not self.closed:
            self._file.data = self.getvalue()
        super().close()
