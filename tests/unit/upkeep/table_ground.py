"""Tables with real manifests in a memory store: what engines write, in a few bytes."""

from collections.abc import Sequence
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.storage.port import Absent
from arco_sim.manifests import ROWS, manifest, manifest_list
from unit.catalog.ground import NAMESPACE, Server
from unit.upkeep.ground import UpkeepGround


class Table:
    """One table and what is in it. Each snapshot replaces everything: its files are named by it alone."""

    def __init__(self, ground: UpkeepGround, server: Server, name: str = "a") -> None:
        self.ground = ground
        self.server = server
        self.name = name
        self.files: dict[int, list[str]] = {}
        self._made = 0

    async def metadata(self) -> TableMetadata:
        return (await self.server.catalog.tables.load(NAMESPACE, self.name))[1].metadata

    async def uuid(self) -> str:
        return (await self.metadata()).table_uuid

    async def set(self, **properties: str) -> None:
        """Properties; two underscores stand for a dash, one for a dot."""
        named = {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}
        await self.update({"action": "set-properties", "updates": named})

    async def update(self, *updates: dict[str, Any], by: Server | None = None) -> None:
        self._made += 1
        key = f"update {self.name} {self._made}"
        await (by or self.server).commit(self.name, key, {"requirements": [], "updates": list(updates)})
        await (by or self.server).settle()

    async def publish(self, snapshot_id: int, ref: str = "main", **summary: str) -> list[str]:
        """A snapshot with a file of its own: the locations of what it consists of, the data first."""
        metadata = await self.metadata()
        parent = metadata.refs.get(ref, metadata.refs.get("main", {})).get("snapshot-id")
        update = await self.written(metadata, snapshot_id, parent, **summary)
        await self.update(
            update, {"action": "set-snapshot-ref", "ref-name": ref, "snapshot-id": snapshot_id, "type": "branch"}
        )
        return self.files[snapshot_id]

    async def publish_naming(self, snapshot_id: int, data: str) -> None:
        """A snapshot whose file has a location of the client's own spelling, and is not written."""
        update = await self.written(await self.metadata(), snapshot_id, None, data=data)
        main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": snapshot_id, "type": "branch"}
        await self.update(update, main)

    async def written(
        self, metadata: TableMetadata, snapshot_id: int, parent: int | None, *, data: str = "", **summary: str
    ) -> dict[str, Any]:
        """The files of a snapshot, and the update that would add it."""
        place = metadata.location
        named, listed = f"{place}/metadata/{snapshot_id}-m0.avro", f"{place}/metadata/snap-{snapshot_id}.avro"
        written = [] if data else [(f"{place}/data/{snapshot_id}.parquet", ROWS)]
        data = data or written[0][0]
        sequence = metadata.last_sequence_number + 1
        entry, manifest_bytes = manifest(named, snapshot_id, [data])
        list_bytes = manifest_list(listed, snapshot_id, parent, sequence, [entry])
        for location, content in (*written, (named, manifest_bytes), (listed, list_bytes)):
            await self.put(location, content)
        self.files[snapshot_id] = [data, named, listed]
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": sequence,
            "timestamp-ms": self.ground.clock.now_ms(),
            "manifest-list": listed,
            "summary": {"operation": "overwrite", **{key.replace("_", "-"): value for key, value in summary.items()}},
        }
        return {
            "action": "add-snapshot",
            "snapshot": snapshot if parent is None else {**snapshot, "parent-snapshot-id": parent},
        }

    async def put(self, location: str, content: bytes = ROWS) -> str:
        key = self.key(location)
        await self.ground.store.put(key, content, Absent())
        return location

    def key(self, location: str) -> str:
        found = self.server.ws.locations.key(location)
        assert found is not None
        return found

    def there(self, locations: Sequence[str]) -> list[bool]:
        objects = set(self.ground.objects())
        return [self.key(one) in objects for one in locations]


async def maintained_table(ground: UpkeepGround, **properties: str) -> Table:
    server = ground.server()
    await server.found("a")
    table = Table(ground, server)
    await table.set(maintenance_expire__snapshots_enabled="true", **properties)
    return table
