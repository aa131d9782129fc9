"""What a single key promises, one operation at a time: the models that histories are judged against.

What must never enter: the product. A model that calls the code under test agrees with its bugs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from arco_sim.linearizability import Operation


class CasRegister:
    """A value, or None while absent.

    read -> the value; write(v) -> "ok"; create(v) -> "ok" or "exists";
    cas((expected, new)) -> "ok" or "failed", where expecting None means expecting absence;
    delete -> "ok", also when there was nothing to delete.
    """

    def initial(self) -> Hashable:
        return None

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable, ...]:
        after, result = self._apply(state, operation)
        return (after,) if result == operation.result else ()

    def step_unknown(self, state: Hashable, operation: Operation) -> tuple[Hashable, ...]:
        return (self._apply(state, operation)[0],)

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read" or operation.result in ("exists", "failed")

    def _apply(self, state: Hashable, operation: Operation) -> tuple[Hashable, Hashable]:
        match operation.name, operation.argument:
            case "read", _:
                return state, state
            case "write", value:
                return _present(value), "ok"
            case "create", value:
                return (_present(value), "ok") if state is None else (state, "exists")
            case "cas", (expected, new):
                return (_present(new), "ok") if state == expected else (state, "failed")
            case "delete", _:
                return None, "ok"
            case _:
                raise ValueError(f"a register knows no {operation.name}({operation.argument!r})")


class Table:
    """What a table holds: a label, and how many columns it has had.

    read -> the label; set(label) -> "ok"; column((last, label)) -> "ok", or "refused" if the last column is another.
    """

    def __init__(self, label: str, columns: int) -> None:
        self._first = (label, columns)

    def initial(self) -> tuple[str, int]:
        return self._first

    def step(self, state: tuple[str, int], operation: Operation) -> tuple[tuple[str, int], ...]:
        label, columns = state
        match operation.name, operation.argument, operation.result:
            case "read", _, seen:
                return (state,) if seen == label else ()
            case "column", (last, _), "refused":
                return (state,) if last != columns else ()
            case _:
                return self.step_unknown(state, operation)

    def step_unknown(self, state: tuple[str, int], operation: Operation) -> tuple[tuple[str, int], ...]:
        match operation.name, operation.argument:
            case "set", str(label):
                return ((label, state[1]),)
            case "column", (last, str(label)):
                return ((label, state[1] + 1),) if last == state[1] else ()
            case _:
                raise ValueError(f"a table knows no {operation.name}({operation.argument!r})")

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read" or operation.result == "refused"


Accounts = tuple[tuple[str, int], ...]


class Bank:
    """Several tables that change together: of each a label, and how many columns it has had.

    look -> the labels; set((tables, label)) -> "ok"; move((last column by table, label)) -> "ok", or "refused" if one of them
    has another last column.
    """

    def __init__(self, tables: tuple[str, ...], label: str, columns: int) -> None:
        self._tables = tables
        self._first = tuple((label, columns) for _ in tables)

    def initial(self) -> Accounts:
        return self._first

    def step(self, state: Accounts, operation: Operation) -> tuple[Accounts, ...]:
        match operation.name, operation.argument, operation.result:
            case "look", _, seen:
                return (state,) if seen == tuple(label for label, _ in state) else ()
            case "move", (tuple(lasts), _), "refused":
                return () if self._holds(state, lasts) else (state,)
            case _:
                return self.step_unknown(state, operation)

    def step_unknown(self, state: Accounts, operation: Operation) -> tuple[Accounts, ...]:
        match operation.name, operation.argument:
            case "set", (tuple(tables), str(label)):
                return (self._changed(state, tables, label, 0),)
            case "move", (tuple(lasts), str(label)):
                tables = tuple(table for table, _ in lasts)
                return (self._changed(state, tables, label, 1),) if self._holds(state, lasts) else ()
            case _:
                raise ValueError(f"a bank knows no {operation.name}({operation.argument!r})")

    def observes(self, operation: Operation) -> bool:
        return operation.name == "look" or operation.result == "refused"

    def _holds(self, state: Accounts, lasts: Accounts) -> bool:
        return all(state[self._tables.index(table)][1] == last for table, last in lasts)

    def _changed(self, state: Accounts, tables: tuple[str, ...], label: str, columns: int) -> Accounts:
        return tuple(
            (label, had + columns) if table in tables else (before, had)
            for table, (before, had) in zip(self._tables, state, strict=True)
        )


class Existence:
    """Something that is there or not, from not there. space -> "ok" or "exists"; unspace -> "ok" or "missing"."""

    def initial(self) -> bool:
        return False

    def step(self, state: bool, operation: Operation) -> tuple[bool, ...]:  # noqa: FBT001 - the state is a yes or no
        wanted = operation.name == "space"
        result = "ok" if state is not wanted else "exists" if wanted else "missing"
        return () if operation.result != result else (wanted,) if result == "ok" else (state,)

    def step_unknown(self, state: bool, operation: Operation) -> tuple[bool, ...]:  # noqa: FBT001
        return (operation.name == "space",)


class Properties:
    """A map of texts, empty at first. change (removals, updates) -> the removals that were there, and the others; read -> all."""

    def initial(self) -> frozenset[tuple[str, str]]:
        return frozenset()

    def step(self, state: frozenset[tuple[str, str]], operation: Operation) -> tuple[frozenset[tuple[str, str]], ...]:
        match operation.name, operation.argument:
            case "read", _:
                return (state,) if operation.result == tuple(sorted(state)) else ()
            case "change", (tuple(removals), tuple()):
                there = {key for key, _ in state}
                result = tuple(tuple(key for key in removals if (key in there) is was) for was in (True, False))
                return self.step_unknown(state, operation) if operation.result == result else ()
            case _:
                raise ValueError(f"properties know no {operation.name}")

    def step_unknown(
        self, state: frozenset[tuple[str, str]], operation: Operation
    ) -> tuple[frozenset[tuple[str, str]], ...]:
        match operation.argument:
            case (tuple(removals), tuple(updates)):
                kept = {key: value for key, value in state if key not in removals}
                return (frozenset((kept | dict(updates)).items()),)
            case _:
                return (state,)

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read"


class Counter:
    """A number, from zero up. increment -> the new number, or "ok" if that is not told; read -> the number."""

    def initial(self) -> int:
        return 0

    def step(self, state: int, operation: Operation) -> tuple[int, ...]:
        (after,) = self.step_unknown(state, operation)
        hidden = operation.name == "increment" and operation.result == "ok"
        return (after,) if hidden or operation.result == after else ()

    def step_unknown(self, state: int, operation: Operation) -> tuple[int, ...]:
        match operation.name:
            case "read":
                return (state,)
            case "increment":
                return (state + 1,)
            case _:
                raise ValueError(f"a counter knows no {operation.name}")

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read"


def _present(value: Hashable) -> Hashable:
    # None means absent: a stored None would let a create succeed over it and nobody would notice.
    if value is None:
        raise ValueError("None cannot be stored: it means absent")
    return value
