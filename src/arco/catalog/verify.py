"""`verify`: everything that the catalog of one workspace has written, looked at again. It reads and never writes.

    manifest → chain of commits → state → replay → tables and views → other pointers → receipts (deep) → files of tables

Each stage goes as far as what it reads can be trusted, and says what it could not look at. Others may write meanwhile: what
is looked at is the catalog as of the manifest that was read first.
"""

import asyncio

from arco.catalog.catalog import Catalog
from arco.catalog.manifest import Manifest
from arco.catalog.model import Entry, Format, Kind
from arco.catalog.names import Names
from arco.catalog.pointer import Pointer
from arco.catalog.spelling import spelled
from arco.catalog.verify_chain import Chain, compare, replayed
from arco.catalog.verify_files import FilesCheck
from arco.catalog.verify_pointers import verify_nameless_pointers
from arco.catalog.verify_receipts import ReceiptCheck
from arco.catalog.verify_state import CHAIN_IS_BROKEN, CHAIN_IS_WHOLE, load_state
from arco.catalog.verify_tables import RECORD, TableCheck
from arco.kernel.errors import AskOperator
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX
from arco.storage.findings import Progress, Report, nobody, way_out
from arco.storage.keys import prefix_of
from arco.storage.looking import Look

_RESTORE = "restore it from a backup or a copy of the root; nothing else can be looked at without it"


async def verify(catalog: Catalog, *, files: bool = True, deep: bool = False, progress: Progress = nobody) -> Report:
    """Look at everything; without `files` tables are looked at down to their metadata. `deep` also reads every receipt."""
    report = Report()
    manifest = await _manifest(catalog, report)
    if manifest is None:
        return report
    store, scope = catalog.parts.tier1.store, catalog.parts.scope
    commits = await Chain(store, scope, manifest, report, progress).walk()
    state = await load_state(store, manifest, report, CHAIN_IS_BROKEN if commits is None else CHAIN_IS_WHOLE)
    rebuilt = None if commits is None else replayed(commits, report, progress)
    if state is not None and rebuilt is not None:
        compare(rebuilt, state, report)
    else:
        report.note("the state was not compared with what the commits add up to: one of the two is damaged")
    names = state or rebuilt
    if names is None:
        report.note("tables were not looked at: neither the state nor the chain is whole")
        return report
    _count(names, report)
    live, dropped = await _entries(catalog, names, report)
    pointers = await _tables(catalog, live, dropped, report, progress)
    await verify_nameless_pointers(Look(store, scope, report, progress), {entry.uuid for entry in (*live, *dropped)})
    if deep:
        await ReceiptCheck(catalog, report, progress).check([*live, *dropped], pointers)
    if files:
        tables = [entry for entry in (*live, *dropped) if entry.kind is Kind.TABLE]
        await FilesCheck(catalog, report, progress).check(tables, pointers)
    if not report.clean and await _moved(catalog, manifest):
        report.note("others changed the catalog meanwhile: verify again before you act on what concerns a table")
    return report


async def _manifest(catalog: Catalog, report: Report) -> Manifest | None:
    tier1 = catalog.parts.tier1
    try:
        held = await tier1.head.read()
    except AskOperator as error:
        what = f"the manifest cannot be read ({error.message})"
        report.find("manifest_unreadable", tier1.head.key, what, way_out(error, _RESTORE))
        return None
    if held is not None:
        return held.value
    page = await tier1.store.list_page(prefix_of(catalog.parts.scope, "_catalog", "core", "commits"), limit=1)
    if page.entries:
        what = f"there are commits and no manifest ({tier1.head.key})"
        report.find("manifest_missing", tier1.head.key, what, _RESTORE)
    else:
        report.note(f"there is no catalog {catalog.parts.scope.warehouse} here yet")
    return None


async def _moved(catalog: Catalog, manifest: Manifest) -> bool:
    held = await catalog.parts.tier1.head.read()
    return held is None or held.value.sequence != manifest.sequence


def _count(names: Names, report: Report) -> None:
    report.count("namespaces", len(names.namespaces))
    report.count("other_tables", sum(entry.format is not Format.ICEBERG for entry in names.entries.values()))


async def _decided(catalog: Catalog, names: Names, report: Report) -> list[Entry]:
    """Tables whose names transactions keep. What was decided is there for everybody, though tier 1 does not say so yet."""
    records, there = catalog.parts.records, []
    for kept in names.reserved.values():
        report.count("under_way")
        try:
            record = await records.read(kept.tx_id)
        except AskOperator as error:
            called = spelled(kept.entry.namespace, kept.entry.name)
            what = f"the transaction that keeps the name {called} cannot be read ({error.message})"
            report.find("transaction_unreadable", records.key(kept.tx_id), what, way_out(error, RECORD))
            continue
        if record is not None and record.value.names(kept.part()):
            there.append(kept.entry)
    return there


async def _entries(catalog: Catalog, names: Names, report: Report) -> tuple[list[Entry], list[Entry]]:
    """Iceberg tables and views that have a name, and those that can be restored."""
    live = [entry for entry in names.entries.values() if entry.format is Format.ICEBERG]
    live += await _decided(catalog, names, report)
    # What is to be purged is whole until tier 1 forgets it; what was unregistered is for its next owner to look at.
    restorable = [one for one in names.dropped.values() if not one.unregistered]
    kept = [one.entry for one in restorable if one.entry.format is Format.ICEBERG]
    return live, kept


async def _tables(
    catalog: Catalog, live: list[Entry], dropped: list[Entry], report: Report, progress: Progress
) -> dict[str, Pointer]:
    """Look at tables and views: their pointers, for whoever looks further."""
    tables = TableCheck(catalog, report)
    wanted = [*((entry, False) for entry in live), *((entry, True) for entry in dropped)]
    for start in range(0, len(wanted), VERIFY_READ_AHEAD_MAX):
        group = wanted[start : start + VERIFY_READ_AHEAD_MAX]
        await asyncio.gather(*(tables.check(entry, dropped=gone) for entry, gone in group))
        progress("tables", start + len(group), len(wanted))
    return tables.pointers
