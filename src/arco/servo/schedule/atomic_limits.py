"""How many tables an atomic run would change at once: known from the plan, and refused before anything is begun."""

from collections.abc import Collection, Mapping

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import TRANSACTION_CHANGES_MAX, TRANSACTION_TABLES_EVER_MAX
from arco.servo.plan.document import Plan
from arco.servo.sdk.definitions import AssetDefinition


def sets_rows_aside(assets: Mapping[AssetKey, AssetDefinition]) -> set[str]:
    """The assets whose checks set rows aside, in tables of their own."""
    return {str(key) for key, one in assets.items() if any(check.quarantine_rows for check in one.checks)}


def tables_of(plan: Plan, sets_rows_aside: Collection[str]) -> int:
    """The tables that a plan may change. An asset whose checks set rows aside may change a second one."""
    assets = {task.asset for task in plan.spec.tasks}
    return len(assets) + len(assets & set(sets_rows_aside))


def refuse_too_many(plan: Plan, sets_rows_aside: Collection[str], tables_max: int) -> None:
    tables, tasks = tables_of(plan, sets_rows_aside), len(plan.spec.tasks)
    if tables > tables_max:
        way_out = (
            f"allow more, up to {TRANSACTION_TABLES_EVER_MAX}: --transaction-tables {tables}"
            if tables <= TRANSACTION_TABLES_EVER_MAX
            else "no transaction has so many"
        )
        raise InvalidInput(
            f"an atomic run of this plan changes up to {tables} tables in one transaction, more than {tables_max}",
            hint=f"{way_out}; or ask for fewer assets, or run it without --atomic",
        )
    if tasks * 2 > TRANSACTION_CHANGES_MAX:
        raise InvalidInput(
            f"an atomic run of {tasks} tasks, more than {TRANSACTION_CHANGES_MAX // 2}",
            hint="ask for fewer partitions, or let a task cover more of them: partitions_per_task",
        )
