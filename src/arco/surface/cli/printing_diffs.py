"""How differences look: what came in green, what went in red, what changed in yellow. What is compared is decided elsewhere."""

from collections.abc import Iterator
from shlex import quote
from typing import Any

from arco.fold.manifests import RootManifest
from arco.read.cut import Cut
from arco.read.diff_schemas import SchemaDiff
from arco.read.diff_snapshots import RowChange, SnapshotDiff, TableChanges
from arco.read.diff_versions import Measure, VersionDiff
from arco.read.partitions import Version, Versions
from arco.read.schemas import SchemaHistory
from arco.surface.cli.partition_spelling import spelled_key
from arco.surface.cli.printing import counted, lasting, print_grid, say, say_painted, size, stamp, when

_HASH_CHARS = 12
_VERDICTS = {"refused": "bold red"}


# Snapshots


def print_snapshots(listed: list[RootManifest]) -> None:
    print_grid(
        ("snapshot", "published (UTC)", "number"), [(s.snapshot, when(s.published_ms), str(s.sequence)) for s in listed]
    )
    if len(listed) > 1:
        say(f"Next: arco diff {listed[1].snapshot} says what changed since, arco diff A B what changed between two")


def print_snapshot_diff(found: SnapshotDiff, before: Cut, after: Cut) -> None:
    say(f"from {before.snapshot_id}, {when(before.published_ms)} UTC")
    say(
        f"to   {after.snapshot_id or 'what is not folded yet'}{f', {when(after.published_ms)} UTC' if after.published_ms else ''}"
    )
    for table in found.tables:
        _print_table(table)
    if not found.tables:
        say("Nothing differs.")


def _print_table(table: TableChanges) -> None:
    counts = ((table.added, "new"), (table.removed, "gone"), (table.changed, "changed"))
    many = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    say_painted((table.table.replace("_", " "), "bold"), (f"  {many}", ""))
    for row in table.rows:
        if row.before is None:
            say_painted(("  + ", "green"), (_label(row, row.after or {}), ""), (_said(row.after or {}), "dim"))
        elif row.after is None:
            say_painted(("  - ", "red"), (_label(row, row.before), ""), (_said(row.before), "dim"))
        else:
            say_painted(("  ~ ", "yellow"), (_label(row, row.after), ""), (_changed(row.before, row.after), "dim"))
    if table.truncated:
        say(f"  … {table.added + table.removed + table.changed - len(table.rows):,} more: --limit")


_NAMING = ("asset", "partition_key", "source", "target")


def _label(row: RowChange, said: dict[str, Any]) -> str:
    """What a row is about, by its names; by its key where it has none."""
    if "run_id" in row.key:
        return str(row.key["run_id"])
    if said.get("source") is not None and said.get("target") is not None:
        return f"{said['source']} ─► {said['target']}"
    names = [said.get("asset"), spelled_key(said.get("partition_key"))]
    return " ".join(str(one) for one in names if one) or " ".join(map(str, row.key.values()))


def _said(values: dict[str, Any]) -> str:
    parts = [
        f"{name} {_cell(value)}" for name, value in values.items() if name not in _NAMING and value not in {None, False}
    ]
    return f"  {', '.join(parts)}" if parts else ""


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    parts = [f"{name} {_cell(before[name])} → {_cell(after[name])}" for name in after if before[name] != after[name]]
    return f"  {', '.join(parts)}" if parts else "  in what is not shown here"


def _cell(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else "nothing"
        if value is None
        else str(value)
    )


# Versions


def print_versions(history: Versions, limit: int) -> None:
    rows = [
        (
            str(one.number),
            "current" if one.current else "",
            stamp(one.published_at),
            "" if one.rows is None else f"{one.rows:,}",
            size(one.bytes),
            str(one.schema_id if one.schema_id is not None else ""),
            (one.code or "")[:_HASH_CHARS],
            one.run_id,
        )
        for one in history.versions[:limit]
    ]
    say(f"{history.asset} {spelled_key(history.partition_key)}".rstrip())
    print_grid(
        ("version", "", "published (UTC)", "rows", "size", "schema", "code", "run"), rows, paint={1: {"current": "green"}}
    )
    if len(history.versions) > limit:
        say(f"… {len(history.versions) - limit:,} more: --limit")
    if len(history.versions) > 1:
        newer, older = history.versions[0].number, history.versions[1].number
        part = f" --partition {spelled_key(history.partition_key)}" if history.partition_key else ""
        say(f"Next: arco diff {quote(history.asset)} --versions {older} {newer}{part}")


def print_version_diff(found: VersionDiff) -> None:
    say(f"{found.asset} {spelled_key(found.partition_key)}".rstrip())
    rows = list(_version_rows(found))
    print_grid(("", f"version {found.before.number}", f"version {found.after.number}", ""), rows, folds=(1, 2, 3))


def _version_rows(found: VersionDiff) -> Iterator[tuple[str, str, str, str]]:
    before, after = found.before, found.after
    later = (
        "" if found.between_s is None else f"{lasting(found.between_s)} {'later' if found.between_s >= 0 else 'earlier'}"
    )
    yield "published (UTC)", stamp(before.published_at), stamp(after.published_at), later
    yield "run", before.run_id or "", after.run_id or "", ""
    yield _measured("rows", found.rows)
    yield _measured("bytes", found.bytes)
    yield _measured("files", found.files)
    yield "schema", _text(before.schema_id), _text(after.schema_id), "changed" if found.schema_changed else ""
    yield "code", _code(before), _code(after), "changed" if found.code_changed else ""
    yield (
        "code of project",
        before.code_version or "",
        after.code_version or "",
        "changed" if found.code_version_changed else "",
    )
    if found.table_changed:
        yield "table", before.table_uuid or "", after.table_uuid or "", "another one"
    for name, change in found.inputs.items():
        yield f"read of {name}", _text(change.before), _text(change.after), "another snapshot"
    failed = (", ".join(found.checks_failed_before_only), ", ".join(found.checks_failed_after_only))
    if any(failed):
        yield "failed only here", *failed, ""


def _measured(name: str, measure: Measure) -> tuple[str, str, str, str]:
    change = "" if not measure.change else f"{measure.change:+,}"
    return name, _text(measure.before), _text(measure.after), change


def _text(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _code(one: Version) -> str:
    return (one.code or "")[:_HASH_CHARS]


# Schemas


def print_schemas(history: SchemaHistory) -> None:
    rows = [
        (
            str(one.schema_id),
            "current" if one.current else "",
            stamp(one.first_seen_at),
            ", ".join(c.path for c in one.columns),
        )
        for one in history.table
    ]
    if rows:
        print_grid(("schema", "", "first seen (UTC)", "columns"), rows, folds=(3,), paint={1: {"current": "green"}})
    declared = [
        (one.schema_hash[:_HASH_CHARS], one.verdict, stamp(one.declared_at), ", ".join(c.path for c in one.columns))
        for one in history.declared
    ]
    if declared:
        print_grid(("declared", "", "declared (UTC)", "columns"), declared, folds=(3,))
    if not rows and not declared:
        say(f"Nothing is known of the columns of {history.asset}.")
    pair = [one.schema_id for one in history.table[:2]]
    names = [one.schema_hash[:_HASH_CHARS] for one in history.declared[:2]]
    older_first = [str(one) for one in reversed(pair if len(pair) > 1 else names)]
    if len(older_first) > 1:
        say(f"Next: arco diff {quote(history.asset)} --schemas {older_first[0]} {older_first[1]}")


def print_schema_diff(found: SchemaDiff) -> None:
    if not found.changes:
        say(f"{found.asset}: schemas {found.before} and {found.after} are the same")
        return
    rows = [
        (one.column, one.kind.replace("_", " "), one.before, one.after, "refused" if one.refused else "", one.refused)
        for one in found.changes
    ]
    print_grid(("column", "change", "before", "after", "", "why"), rows, folds=(0, 5), paint={4: _VERDICTS})
    verdict = "allowed" if found.allowed else "refused"
    way = "in place" if found.in_place else "by writing the table again"
    say(f"{counted(len(found.changes), 'change')}, {verdict} under {found.mode} compatibility, made {way}")
