"""`arco assets NAME`: the page of one asset, and its partitions."""

from collections.abc import Iterator
from shlex import quote

from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.assets import AssetPage, asset
from arco.read.checks import CheckResult
from arco.read.library import Binding
from arco.read.pages import Page, Window
from arco.read.partitions import Partition, partitions
from arco.read.reader import Reader
from arco.read.schemas import CurrentColumns, current_columns
from arco.surface.cli.asking import asking
from arco.surface.cli.flags import Where
from arco.surface.cli.listing_assets import COLOURS, kind_of
from arco.surface.cli.partition_spelling import spelled_key, spelled_ranges
from arco.surface.cli.printing import counted, lasting, print_facts, print_grid, print_json, say, say_painted, size, stamp

Facts = list[tuple[str, str | None]]

PASSED = {"passed": "green", "failed": "bold red"}


async def show_asset(where: Where, binding: Binding, name: str, *, partitions: bool, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.need_state()
        if partitions:
            _print_partitions(name, await _all_partitions(asked.reader, name), json=json)
            return True
        page = await asset(asked.reader, name, asked.now_ms)
        columns = await current_columns(asked.reader, name)
    if json:
        print_json(page)
        return True
    say_painted((page.asset.asset, "bold"), ("  ", ""), (page.status, COLOURS[page.status]))
    print_facts([*_identity(page), *_published(page)])
    _print_columns(columns)
    _print_checks(page.checks)
    typed = quote(page.asset.asset)
    say(f"\nNext: arco health {typed}, arco lineage {typed}, arco assets {typed} --partitions")
    return True


def _identity(page: AssetPage) -> Facts:
    line = page.asset
    return [
        ("health", "; ".join(page.reasons)),
        ("asked as", f"{page.alias}, its former name" if page.alias else None),
        ("kind", kind_of(line)),
        ("project", line.project),
        ("owner", ", ".join(line.owners)),
        ("tags", " ".join(line.tags)),
        ("description", line.description),
        ("formerly", ", ".join(page.former_names)),
        ("reads", "\n".join(page.inputs)),
        ("partitioned by", ", ".join(f"{axis['name']} ({axis['kind']})" for axis in page.partitioning)),
        ("deployed", _deployed(page)),
        ("id", line.asset_id),
    ]


def _deployed(page: AssetPage) -> str | None:
    if not page.asset.made_by_project:
        return None
    return f"{stamp(page.asset.deployed_at)} UTC{f' by {page.deployed_by}' if page.deployed_by else ''}"


def _published(page: AssetPage) -> Facts:
    table, last, fresh = page.table, page.last_publish, page.freshness
    facts: Facts = [
        ("table", None if table is None else table.location or table.table_uuid),
        ("snapshot", None if table is None or table.snapshot_id is None else str(table.snapshot_id)),
        ("partitions", _summary(page)),
        ("last publish", None if last is None else f"{stamp(last.published_at)} UTC by run {last.run_id}"),
        ("fresh within", lasting(fresh.fresh_within_s)),
        ("due", None if fresh.deadline is None else f"{stamp(fresh.deadline)} UTC"),
    ]
    if table is not None and table.external_commit_at is not None:
        who = f" by {table.external_principal}" if table.external_principal else ""
        facts.append(("written by others", f"{stamp(table.external_commit_at)} UTC{who}"))
    for held in page.held:
        text = f"{spelled_ranges(held.partitions) or 'all of it'} by {', '.join(held.reasons) or 'its gate'}, run {held.run_id}"
        facts.append(("held back", text))
    return facts


def _summary(page: AssetPage) -> str | None:
    its = page.summary
    if not its.partitions:
        awaited = page.asset.made_by_project and page.asset.kind != "source"
        return "none was published yet" if awaited else None
    keys = f" from {spelled_key(its.first_key)} to {spelled_key(its.last_key)}" if its.last_key else ""
    marked = f", {its.marked:,} in a table that others wrote to since" if its.marked else ""
    return f"{its.partitions:,}{keys}: {counted(its.rows, 'row')}, {size(its.bytes)}, {counted(its.files, 'file')}{marked}"


def _print_columns(found: CurrentColumns) -> None:
    if not found.columns:
        return
    say("")
    rows = [(one.path, one.type, "" if one.required else "yes", one.doc) for one in found.columns]
    print_grid(
        ("column" if found.source == "table" else "declared column", "type", "null", "description"), rows, folds=(0, 1, 3)
    )


def _print_checks(checks: tuple[CheckResult, ...]) -> None:
    if not checks:
        return
    say("")
    words = {True: "passed", False: "failed", None: "not decided"}
    rows = [
        (one.check_name or one.check_id, words[one.passed], one.severity, _rows_of(one), stamp(one.checked_at), one.message)
        for one in checks
    ]
    print_grid(("check", "last", "severity", "rows", "checked (UTC)", ""), rows, folds=(0, 5), paint={1: PASSED})


def _rows_of(one: CheckResult) -> str:
    return f"{one.failed_rows:,}" if one.failed_rows else ""


async def _all_partitions(reader: Reader, name: str) -> Page[Partition]:
    found: list[Partition] = []
    cursor = None
    while True:
        page = await partitions(reader, name, Window(ANSWER_PAGE_ITEMS_MAX, cursor))
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return Page(snapshot_id=page.snapshot_id, items=tuple(found))


def _notes(one: Partition) -> Iterator[str]:
    if one.quarantined:
        yield "held back by hand"
    if one.marked:
        yield "others wrote to the table since"


def _print_partitions(name: str, found: Page[Partition], *, json: bool) -> None:
    if json:
        print_json(found)
        return
    if found.items:
        rows = [
            (
                spelled_key(one.partition_key) or "all of it",
                f"{one.rows:,}" if one.rows is not None else "",
                size(one.bytes),
                stamp(one.published_at),
                one.run_id,
                one.quality,
                "; ".join(_notes(one)),
            )
            for one in found.items
        ]
        print_grid(("partition", "rows", "size", "published (UTC)", "run", "checks", ""), rows, folds=(0, 6))
    say(f"{counted(len(found.items), 'partition')}; arco diff {name} --versions --partition KEY lists the versions of one")
