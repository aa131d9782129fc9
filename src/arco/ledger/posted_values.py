"""What the events of runs may say when other systems post them: states that there are, times and counts that can be.

Whoever posts hears of it and can correct it. What a ledger has already is folded as it is: an event that was taken is not
refused later for a word that nobody checked then, so nothing of this stands in the structs themselves.
"""

from typing import Any

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.ledger.execution_events import RunCompleted, TaskEnded
from arco.ledger.run_entries import RunStatus
from arco.ledger.run_state import ENDED, TaskStatus

RUN_STATES = tuple(one.value for one in RunStatus)
TASK_STATES = tuple(one.value for one in TaskStatus)
RUN_ENDS = (RunStatus.SUCCEEDED.value, RunStatus.FAILED.value, RunStatus.CANCELLED.value)
TASK_ENDS = tuple(one.value for one in TaskStatus if one in ENDED)

_ANY_NUMBER = frozenset({"snapshot_id"})
"""Ids that others give: any number is one."""


def check_values(payload: msgspec.Struct) -> None:
    """Refuse states that there are not, and times and counts below zero."""
    if isinstance(payload, RunCompleted):
        need_state("state", payload.state, RUN_ENDS)
        for state in payload.tasks:
            need_state("tasks", state, TASK_ENDS)
    elif isinstance(payload, TaskEnded):
        need_state("state", payload.state, TASK_ENDS)
    _check_numbers(payload, "")


def need_state(where: str, state: str, known: tuple[str, ...]) -> None:
    if state not in known:
        raise InvalidInput(f"{where}: there is no state {clip(state)!r}", hint=f"one of {', '.join(known)}")


def _check_numbers(value: Any, where: str) -> None:
    """Numbers of a struct, of the structs inside it, and of what it counts by name."""
    for field in value.__struct_fields__:
        found, place = getattr(value, field), f"{where}{field}"
        if isinstance(found, int) and not isinstance(found, bool) and found < 0 and field not in _ANY_NUMBER:
            raise InvalidInput(f"{place} is {found}: times and counts are not below zero")
        for number, one in enumerate(found if isinstance(found, tuple) else ()):
            if isinstance(one, msgspec.Struct):
                _check_numbers(one, f"{place}[{number}].")
        if field == "tasks" and isinstance(found, dict) and any(count < 0 for count in found.values()):
            raise InvalidInput(f"{place}: times and counts are not below zero")
