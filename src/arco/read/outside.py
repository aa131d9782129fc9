"""Commits from outside to tables that projects make: what others wrote there since, and nobody here has checked.

Only where current partitions are marked is anything read. Upkeep writes the same rows into other files: that is no change.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arco.fold.tables import ICEBERG_COMMITS
from arco.read.answers import plain
from arco.read.incarnations import Incarnation
from arco.read.reader import Reader
from arco.read.views import text

_REWRITTEN = ("admin", "replace")


@dataclass(frozen=True, slots=True)
class OutsideCommit:
    """The newest change of others to what is read of a table."""

    who: str
    at: datetime | None
    snapshot_id: int | None = None
    operation: str | None = None
    client: str | None = None
    added_rows: int | None = None
    deleted_rows: int | None = None

    @property
    def words(self) -> str:
        """Who did what, when."""
        rows = [
            f"{count:,} rows {what}"
            for count, what in ((self.added_rows, "added"), (self.deleted_rows, "deleted"))
            if count
        ]
        what = ", ".join([self.operation or "a commit", *rows])
        snapshot = f", snapshot {self.snapshot_id}" if self.snapshot_id is not None else ""
        when = f" at {self.at:%Y-%m-%d %H:%M} UTC" if self.at is not None else ""
        return f"{self.who}{when} ({what}{snapshot})"


async def outside_commits(reader: Reader, tables: Mapping[str, Incarnation]) -> dict[str, OutsideCommit]:
    """The newest commit from outside to the table of each asset that is given, by the asset."""
    rows = {asset_id: table.row for asset_id, table in tables.items() if table.row is not None}
    if not rows:
        return {}
    commits = await _commits(reader, [str(row["table_uuid"]) for row in rows.values()])
    found: dict[str, OutsideCommit] = {}
    for asset_id, row in rows.items():
        commit = commits.get((row["table_uuid"], row["external_commit_at"]))
        if commit is None or (commit["source"], commit["operation"]) != _REWRITTEN:
            found[asset_id] = _said(row, commit or {})
    return found


def _said(row: dict[str, Any], commit: dict[str, Any]) -> OutsideCommit:
    return OutsideCommit(
        who=row["external_principal"] or "somebody",
        at=plain(row["external_commit_at"]),
        **{name: commit.get(name) for name in ("snapshot_id", "operation", "client", "added_rows", "deleted_rows")},
    )


async def _commits(reader: Reader, tables: Collection[str]) -> dict[tuple[str, Any], dict[str, Any]]:
    """Commits that Servo did not make, by their tables and times; of two at one time the last."""
    rows = await reader.rows(
        f"""SELECT * FROM {await reader.relation(ICEBERG_COMMITS, tables)} WHERE source <> {text("servo")}
            ORDER BY commit_number"""
    )
    return {(row["table_uuid"], row["committed_at"]): row for row in rows}
