"""What creating, renaming and dropping a table costs when there are many already, and what starting costs then.

The names are written by a generator as one base file, never by so many creates. Requests, bytes and round trips are counted on
a store in memory; only the start of a server is timed.
"""

import time
from dataclasses import dataclass

from tests.integration.catalog_costs import PREFIX, SCHEMA, SCOPE, TABLES, Cost, Ground, prepare, rename

from arco.catalog.checkpoint import checkpoint
from arco.catalog.manifest import Commit, Manifest, StateFile
from arco.catalog.model import Entry, Format, Kind, Namespace
from arco.catalog.names import Names
from arco.catalog.state_files import encode_changes, everything
from arco.catalog.tier1 import Tier1
from arco.kernel.entropy import SeededEntropy
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import CommitId, UlidSource, new_uuid4
from arco.storage.keys import CatalogCommitKey, CatalogStateKey, FileName
from arco.storage.port import Absent
from arco.storage.profile import operation

TABLES_PER_NAMESPACE = 1000
CHAINS = (10, 100, 1000)


@dataclass(frozen=True)
class Scale:
    """Costs with so many tables."""

    tables: int
    create: Cost
    rename: Cost
    drop: Cost
    delta_bytes: int
    base_bytes: int
    start: Cost
    start_s: float
    rewrite_s: float


def many_names(count: int, ground: Ground) -> Names:
    """So many tables, a thousand to a namespace."""
    names, entropy, ulids = Names(), SeededEntropy(count), UlidSource(ground.clock, ground.entropy)
    now_ms = ground.clock.now_ms()
    for number in range(count):
        levels = (f"department_{number // TABLES_PER_NAMESPACE}",)
        if levels not in names.namespaces:
            names.put_namespace(levels, Namespace(ulids.next(), levels, {"owner": "somebody"}, now_ms, now_ms))
        name, uuid = f"table_{number:06}", new_uuid4(entropy)
        place = f"memory://lake/default/default/data/{name}-{uuid}"
        entry = Entry(uuid, ulids.next(), Kind.TABLE, Format.ICEBERG, levels, name, place, 1, now_ms, now_ms)
        names.put_entry((levels, name), entry)
    return names


async def write_base(names: Names, ground: Ground) -> StateFile:
    """One base file with these names, and a manifest that says so."""
    data, rows = encode_changes(everything(names))
    key = str(CatalogStateKey(SCOPE, FileName("base-generated.parquet")))
    await ground.store.put(key, data, Absent())
    now_ms = ground.clock.now_ms()
    first = Commit(UlidSource(ground.clock, ground.entropy).next(), 1, None, None, now_ms, "generator", None, ())
    await ground.store.put(str(CatalogCommitKey(SCOPE, CommitId(first.id))), first.encode(), Absent())
    base = StateFile(key, rows, len(data), content_hash(data), 1, now_ms)
    manifest = Manifest(1, first.id, first.hash(), checkpointed_sequence=1, base=base)
    await Tier1(ground.store, SCOPE, ground.clock, ground.entropy).head.create(manifest)
    return base


def measure(tables: int) -> Scale:
    ground = Ground()

    async def run() -> Scale:
        base = await write_base(many_names(tables, ground), ground)
        server = ground.server()
        await server.ask("GET", f"{PREFIX}/namespaces")
        await prepare(server)
        tier1 = server.catalog.parts.tier1
        with operation("delta") as delta:
            await checkpoint(tier1, ground.clock, ground.entropy)
        create = await server.cost("create table", "POST", TABLES, {"name": "new", "schema": SCHEMA})
        renamed = await server.cost("rename table", "POST", f"{PREFIX}/tables/rename", rename("t", "u"))
        drop = await server.cost("drop table", "DELETE", f"{TABLES}/u")
        started = time.perf_counter()
        start = await ground.server().cost("load table", "GET", f"{TABLES}/other")
        start_s = time.perf_counter() - started
        started = time.perf_counter()
        encode_changes(everything(tier1.names))
        rewrite_s = time.perf_counter() - started
        return Scale(
            tables, create, renamed, drop, delta.bytes_written, base.size_bytes, start, start_s, rewrite_s
        )  # fmt: skip

    return ground.run(run())


CREATES = (
    ("create table", TABLES, {"name": "new", "schema": SCHEMA}),
    ("create namespace", f"{PREFIX}/namespaces", {"namespace": ["new"]}),
)


def first_changes(commits: int) -> list[Cost]:
    """What servers that have just started do first, in a catalog with so many commits behind it."""
    ground = Ground()

    async def run() -> list[Cost]:
        server = ground.server()
        await prepare(server)
        tier1 = server.catalog.parts.tier1
        while tier1.manifest.sequence < commits:
            properties = {"updates": {"n": str(tier1.manifest.sequence)}, "removals": []}
            await server.ask("POST", f"{PREFIX}/namespaces/db/properties", properties, key=False)
        await checkpoint(tier1, ground.clock, ground.entropy)
        return [await ground.server().cost(what, "POST", path, body) for what, path, body in CREATES]

    return ground.run(run())


def is_flat(least: Cost, cost: Cost) -> bool:
    """As many requests and trips, and the same bytes but for the digits of some numbers."""
    same = (least.trips, least.requests_in_all) == (cost.trips, cost.requests_in_all)
    return same and cost.bytes_written <= least.bytes_written * 1.02


def report(sizes: tuple[int, ...]) -> list[str]:
    scales = [measure(tables) for tables in sizes]
    lines = [
        "| operation | tables | round trips before the answer | requests in all | bytes written | flat |",
        "|---|---|---|---|---|---|",
    ]
    for what in ("create", "rename", "drop"):
        least: Cost = getattr(scales[0], what)
        for scale in scales:
            cost: Cost = getattr(scale, what)
            flat = "yes" if is_flat(least, cost) else "**no**"
            lines.append(
                f"| {cost.what} | {scale.tables:,} | {cost.trips} | {cost.requests_in_all} | {cost.bytes_written:,} | {flat} |"
            )
    lines += [
        "",
        "| tables | base file | delta of a checkpoint | new base | start: round trips | bytes read | time to the first answer |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.tables:,} | {one.base_bytes:,} bytes | {one.delta_bytes:,} bytes | {one.rewrite_s * 1000:,.0f} ms "
            f"| {one.start.trips} | {one.start.bytes_read:,} | {one.start_s * 1000:,.0f} ms |"
            for one in scales
        ),
        "",
        "A new base is encoded once for 50 deltas. The start is a load on a server that is not ready yet.",
        "",
        "| first request of a server that is not ready yet | commits behind it | round trips before the answer | flat |",
        "|---|---|---|---|",
    ]
    firsts = {commits: first_changes(commits) for commits in CHAINS}
    for place, least in enumerate(firsts[CHAINS[0]]):
        for commits in CHAINS:
            cost = firsts[commits][place]
            flat = "yes" if cost.trips <= least.trips else "**no**"
            lines.append(f"| {cost.what} | {commits:,} | {cost.trips} | {flat} |")
    return lines
