"""Checks of an asset: the newest result of each, and the history of results."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from arco.fold.tables import QUALITY_RESULTS
from arco.read.answers import Answer, document, shaped
from arco.read.naming import found_asset
from arco.read.pages import FIRST_PAGE, Listing, Page, Window, paged
from arco.read.reader import Reader


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one output."""

    asset_id: str
    check_id: str
    check_name: str | None
    check_type: str | None
    passed: bool | None
    severity: str | None
    expected: str | None
    actual: str | None
    failed_rows: int | None
    message: str | None
    action: str | None
    materialization_id: str
    run_id: str | None
    task_id: str | None
    partitions: list[dict[str, Any]]
    checked_at: datetime | None


_COLUMNS = ", ".join(CheckResult.__struct_fields__)


class LatestChecks(Answer, frozen=True, kw_only=True):
    asset: str
    asset_id: str
    checks: tuple[CheckResult, ...]


async def latest_checks(reader: Reader, asked: str) -> LatestChecks:
    """The newest result of every check that an asset ever had, those that failed first."""
    named = await found_asset(reader, asked)
    found = (await latest_by_asset(reader, [named.asset_id])).get(named.asset_id, ())
    checks = tuple(sorted(found, key=lambda one: (one.passed is not False, one.check_name or "", one.check_id)))
    return LatestChecks(snapshot_id=reader.cut.snapshot_id, asset=named.asset, asset_id=named.asset_id, checks=checks)


async def check_history(
    reader: Reader,
    asked: str,
    *,
    check: str | None = None,
    window: Window = FIRST_PAGE,
) -> Page[CheckResult]:
    """Results of one check of an asset, by its name or id, or of all of them; newest first."""
    named = await found_asset(reader, asked)
    relation = await reader.relation(QUALITY_RESULTS, named.asset_id)
    select = f"""SELECT *, coalesce(epoch_ms(checked_at), 0) AS at_ms FROM {relation}
        WHERE ? IS NULL OR check_name = ? OR check_id = ?"""
    order = ("at_ms", "check_id", "materialization_id", "partition_id")
    question = {"check_history": named.asset_id, "check": check}
    rows, cursor = await paged(reader, question, Listing(select, order, newest_first=True), [check] * 3, window)
    return Page(snapshot_id=reader.cut.snapshot_id, items=tuple(map(_result, rows)), next_cursor=cursor)


async def latest_by_asset(reader: Reader, asset_ids: Collection[str]) -> dict[str, list[CheckResult]]:
    """The newest result of each check, of some assets at once."""
    relation = await reader.relation(QUALITY_RESULTS, asset_ids)
    rows = await reader.rows(
        f"""SELECT {_COLUMNS} FROM {relation} QUALIFY row_number() OVER (PARTITION BY asset_id, check_id
            ORDER BY checked_at DESC NULLS LAST, position DESC, materialization_id DESC, partition_id DESC) = 1"""
    )
    found: dict[str, list[CheckResult]] = {}
    for row in rows:
        found.setdefault(row["asset_id"], []).append(_result(row))
    return found


def _result(row: dict[str, Any]) -> CheckResult:
    return shaped(CheckResult, row, partitions=document(row["partitions"]) or [])
