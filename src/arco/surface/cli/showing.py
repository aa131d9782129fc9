"""`arco show` and `arco history`: one table or view, as it is and as it came about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from arco.catalog.manifest import Author
from arco.catalog.model import Kind
from arco.catalog.overview import IcebergTable, IcebergView, Overview, overview_of
from arco.catalog.spelling import parse_name, spelled
from arco.catalog.timeline import Happening, timeline_of
from arco.kernel.errors import InvalidInput, NoSuchTable
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_facts, print_grid, print_json, say, size, when


async def show(where: Where, name: str, *, json: bool) -> bool:
    place = parse_name(name)
    async with opened(where) as at:
        await at.need(place)
        with _reaching():
            found = await overview_of(at.catalog, place)
    if json:
        print_json(found)
        return True
    print_facts([*_identity(found), *_said(found), *_iceberg(found)])
    if found.columns:
        say("")
        _print_columns(found)
    for one in found.iceberg.representations if isinstance(found.iceberg, IcebergView) else ():
        say(f"\n-- {one.dialect}\n{one.sql}")
    return True


@contextmanager
def _reaching() -> Iterator[None]:
    """Metadata outside the root is read only where somebody allows it; here is who can."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            error.message, hint="pass --allow-location for the folder of its metadata, or the --root it was made under"
        ) from error


def _identity(found: Overview) -> list[tuple[str, str | None]]:
    former = [f"{spelled(one.namespace, one.name)} until {when(one.until_ms)}" for one in found.former_names]
    return [
        ("name", spelled(found.namespace, found.name)),
        ("kind", "view" if found.kind is Kind.VIEW else f"{found.format} table"),
        ("uuid", found.uuid),
        ("asset", found.asset_id),
        ("location", found.location),
        ("binding", str(found.binding)),
        ("created", f"{when(found.created_ms)} UTC"),
        ("entry changed", f"{when(found.updated_ms)} UTC"),
        ("formerly", "\n".join(reversed(former))),
    ]


def _said(found: Overview) -> list[tuple[str, str | None]]:
    """What people say of it."""
    return [
        ("owner", found.owner),
        ("description", found.description),
        ("tags", " ".join(found.tags)),
        ("sensitivity", found.sensitivity),
        ("rows, as said", None if found.row_count is None else f"{found.row_count:,}"),
        ("size, as said", size(found.size_bytes)),
        ("modified, as said", when(found.last_modified_ms)),
        ("properties", "\n".join(f"{key}={value}" for key, value in sorted(found.properties.items()))),
    ]


def _iceberg(found: Overview) -> list[tuple[str, str | None]]:
    match found.iceberg:
        case IcebergTable() as table:
            snapshot = None if table.snapshot_id is None else f"{table.snapshot_id}, {when(table.snapshot_ms)} UTC"
            others = {name: snapshot_id for name, snapshot_id in table.refs.items() if name != "main"}
            return [
                ("format version", str(table.format_version)),
                ("snapshot", snapshot or "none: nothing was written yet"),
                ("snapshots", f"{table.snapshot_count:,}"),
                ("rows", None if table.row_count is None else f"{table.row_count:,}"),
                ("size", size(table.size_bytes)),
                ("files", None if table.file_count is None else f"{table.file_count:,}"),
                ("branches, tags", "\n".join(f"{name} at {snapshot_id}" for name, snapshot_id in others.items())),
                ("commit", f"{table.commit_number}, {when(table.updated_ms)} UTC"),
                ("metadata", table.metadata_location),
            ]
        case IcebergView() as view:
            return [
                ("version", f"{view.version_id}, {when(view.updated_ms)} UTC"),
                ("commit", str(view.commit_number)),
                ("metadata", view.metadata_location),
            ]
        case None:
            return []


def _print_columns(found: Overview) -> None:
    """The outermost columns; the types of nested ones stand in theirs."""
    outer = [column for column in found.columns if column.parent_field_id is None]
    rows = [
        (
            column.name,
            column.type,
            "yes" if column.nullable else "no",
            found.pii_columns.get(column.path),
            column.description,
        )
        for column in outer
    ]
    print_grid(("column", "type", "null", "pii", "description"), rows, folds=(0, 1, 4))
    there = {column.path for column in found.columns}
    nested = [column.path for column in found.columns if column.parent_field_id is not None]
    for path, kind in found.pii_columns.items():
        if path in nested:
            say(f"pii: {path} is {kind}")
        elif path not in there:
            say(f"pii: {path} was marked {kind}, and there is no such column {'any more' if there else 'that is known'}")


async def history(where: Where, name: str, limit: int, *, json: bool) -> bool:
    place = parse_name(name)
    async with opened(where) as at:
        try:
            with _reaching():
                shown, in_all = await timeline_of(at.catalog, place, limit)
        except NoSuchTable:
            await at.need(place)
            raise
    if json:
        plain = [{"at_ms": one.at_ms, "what": one.what} | one.facts | _by(one.author) for one in shown]
        print_json({"namespace": place[0], "name": place[1], "happenings": plain, "in_all": in_all})
        return True
    rows = [(when(one.at_ms), str(one.facts.get("operation", one.what)), _who(one.author), _told(one)) for one in shown]
    print_grid(("when (UTC)", "what", "who", ""), rows, folds=(2, 3))
    if len(shown) < in_all:
        say(f"{in_all - len(shown):,} more: --limit 0 shows all")
    return True


def _by(author: Author | None) -> dict[str, str | None]:
    """For programs: both are there, known or not."""
    return {"by": None if author is None else author.principal, "client": None if author is None else author.client_id}


def _who(author: Author | None) -> str:
    if author is None:
        return ""
    return author.principal if author.client_id is None else f"{author.principal}, {author.client_id}"


def _told(one: Happening) -> str:
    known = one.facts
    match one.what:
        case "snapshot":
            return ", ".join(part for part in _snapshot_parts(known) if part)
        case "committed":
            file = str(known["metadata_location"]).rpartition("/")[2]
            together = f", transaction {known['transaction']}" if "transaction" in known else ""
            return f"{file}{' (current)' if known['current'] else ''}{together}"
        case "renamed":
            return f"from {spelled(tuple(known['from']))} to {spelled(tuple(known['to']))}"
        case "dropped":
            earlier = ", an earlier table of this name" if "earlier_table" in known else ""
            became = ", unregistered" if known.get("unregistered") else ", to be purged" if known["purge"] else ""
            return f"drop id {known['drop_id']}{became}{earlier}"
        case "restored":
            return f"as {spelled(tuple(known['to']))}"
        case "described":
            return ", ".join(known["fields"])
        case "version":
            return f"{known['version_id']}{' (current)' if known['current'] else ''}"
        case _:
            return f"{known['format']} at {known['location']}"


def _snapshot_parts(known: dict[str, Any]) -> list[str]:
    refs = f" ({', '.join(known['refs'])})" if known["refs"] else ""
    return [
        "" if not known["added_rows"] else f"+{counted(known['added_rows'], 'row')}",
        "" if not known["deleted_rows"] else f"-{counted(known['deleted_rows'], 'row')}",
        "" if known["rows"] is None else f"{counted(known['rows'], 'row')} in all",
        size(known["size_bytes"]),
        f"snapshot {known['snapshot_id']}{refs}",
    ]
