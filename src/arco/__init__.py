"""Arco: a lakehouse in a bucket. What projects and notebooks use is here by name: `from arco import asset, daily, not_null`.

The one `__init__.py` with code in it: a name is imported from its room when it is first used, so that `import arco` costs
nothing and writing an asset loads no engine. What must never enter: names that are not for users, and anything that is run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers and editors; a test compares the two lists
    from arco.kernel.errors import ArcoError
    from arco.quality.builtin import (
        accepted_values,
        column_check,
        foreign_key,
        fresh,
        function_check,
        in_range,
        matches,
        not_null,
        row_count,
        schema_match,
        sql_check,
        unique,
    )
    from arco.quality.checks import Check, Severity
    from arco.quality.gates import GatingPolicy
    from arco.servo.sdk.authoring import Asset, asset, check, source
    from arco.servo.sdk.definitions import Retention, Retry
    from arco.servo.sdk.dimensions import daily, dynamic, hourly, monthly, static, weekly
    from arco.servo.sdk.inputs import changes_of, every, files, last, mapped, offset, same, window
    from arco.servo.sdk.run_context import RunContext
    from arco.servo.sdk.schedules import schedule
    from arco.surface.python.connecting import connect
else:

    def __getattr__(name: str) -> Any:
        room = _ROOMS.get(name)
        if room is None:
            raise AttributeError(f"module 'arco' has no attribute {name!r}")
        value = getattr(import_module(room), name)
        globals()[name] = value  # looked up once
        return value


_NAMES = {
    "arco.kernel.errors": ("ArcoError",),
    "arco.quality.builtin": (
        "accepted_values", "column_check", "foreign_key", "fresh", "function_check", "in_range", "matches", "not_null",
        "row_count", "schema_match", "sql_check", "unique",
    ),
    "arco.quality.checks": ("Check", "Severity"),
    "arco.quality.gates": ("GatingPolicy",),
    "arco.servo.sdk.authoring": ("Asset", "asset", "check", "source"),
    "arco.servo.sdk.definitions": ("Retention", "Retry"),
    "arco.servo.sdk.dimensions": ("daily", "dynamic", "hourly", "monthly", "static", "weekly"),
    "arco.servo.sdk.inputs": ("changes_of", "every", "files", "last", "mapped", "offset", "same", "window"),
    "arco.servo.sdk.run_context": ("RunContext",),
    "arco.servo.sdk.schedules": ("schedule",),
    "arco.surface.python.connecting": ("connect",),
}  # fmt: skip
_ROOMS = {name: room for room, names in _NAMES.items() for name in names}

__all__ = [
    "ArcoError",
    "Asset",
    "Check",
    "GatingPolicy",
    "Retention",
    "Retry",
    "RunContext",
    "Severity",
    "accepted_values",
    "asset",
    "changes_of",
    "check",
    "column_check",
    "connect",
    "daily",
    "dynamic",
    "every",
    "files",
    "foreign_key",
    "fresh",
    "function_check",
    "hourly",
    "in_range",
    "last",
    "mapped",
    "matches",
    "monthly",
    "not_null",
    "offset",
    "row_count",
    "same",
    "schedule",
    "schema_match",
    "source",
    "sql_check",
    "static",
    "unique",
    "weekly",
    "window",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
