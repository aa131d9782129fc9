"""Who named, dropped, restored and described a table: what the chain of commits says of it.

The chain is walked from its end to where the table begins, and no further than a bound: in a catalog where much happens, what
happened to one table lies far apart. What is beyond is known by the table itself, without who did it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from arco.catalog.manifest import Author, Commit
from arco.catalog.operations import Create, Describe, Drop, Operation, Rename, Reserve, Undrop
from arco.catalog.tier1 import Tier1
from arco.kernel.limits import HISTORY_COMMITS_MAX

Named = Create | Drop | Undrop | Rename | Describe | Reserve


@dataclass(frozen=True, slots=True)
class NameChange:
    """One operation on a table, when it was committed, and who asked for it."""

    at_ms: int
    operation: Named
    author: Author


async def changes_of(tier1: Tier1, uuid: str) -> list[NameChange]:
    """What the newest commits say of a table, newest first, in the state that is known."""
    found: list[NameChange] = []
    left = HISTORY_COMMITS_MAX
    async for commit in tier1.chain():
        found += _in(commit, uuid)
        left -= 1
        if not left or (found and is_beginning(found[-1].operation)):
            break
    return found


def is_beginning(operation: Named) -> bool:
    """Whether there was nothing of a table before. A name that a transaction kept was asked for when it was kept."""
    return isinstance(operation, Reserve) or (isinstance(operation, Create) and operation.revives is None)


def _in(commit: Commit, uuid: str) -> Iterator[NameChange]:
    for operation, author in reversed([*commit.asked()]):
        for one in _parts(operation):
            if _subject(one) == uuid:
                yield NameChange(commit.at_ms, one, author)


def _parts(operation: Operation) -> Iterator[Named]:
    """What an operation does to single tables: a drop may name its successor. The last of them comes first."""
    match operation:
        case Drop(successor=Create() as heir):
            yield heir
            yield operation
        case Create() | Drop() | Undrop() | Rename() | Describe() | Reserve():
            yield operation
        case _:
            return


def _subject(operation: Named) -> str:
    match operation:
        case Create():
            return operation.entry.uuid
        case Reserve():
            return operation.reservation.entry.uuid
        case _:
            return operation.uuid
