"""The outline of a plan: as much of it as the state of a run follows from. What must never enter: what became of any task."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from arco.kernel.errors import CorruptObject


@dataclass(frozen=True, slots=True)
class Outline:
    """The tasks of a plan, each with the tasks that it reads, and its rank: of two that are ready the lower goes first."""

    reads: Mapping[str, tuple[str, ...]]
    ranks: Mapping[str, int]

    @classmethod
    def of(cls, reads: Mapping[str, tuple[str, ...]]) -> "Outline":
        """Tasks that go in the order in which they are given."""
        return cls(reads, {task: rank for rank, task in enumerate(reads)})

    @classmethod
    def of_plan(cls, data: bytes) -> "Outline":
        """From a stored plan, of which only this much is looked at."""
        try:
            plan = msgspec.json.decode(data, type=_PlanOutline)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptObject(f"a plan that does not parse: {error}") from error
        tasks = sorted(plan.spec.tasks, key=lambda task: (task.priority, task.stage))
        return cls.of({task.id: task.depends_on for task in tasks})


class _TaskOutline(msgspec.Struct, frozen=True):
    id: str
    depends_on: tuple[str, ...]
    priority: int = 0
    stage: int = 0


class _SpecOutline(msgspec.Struct, frozen=True):
    tasks: tuple[_TaskOutline, ...]


class _PlanOutline(msgspec.Struct, frozen=True):
    spec: _SpecOutline
