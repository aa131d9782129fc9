"""Tables as an atomic run will leave them: what the catalog has, with what the run staged on top.

A staged commit is in the run's log, as requirements and updates; its files are written and named by nothing else. So the tasks of
the run read and extend what nobody else can see, and the run's one transaction sends exactly the same commits. Pure. What must
never enter: writing, and anything that only one driver knows.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from arco.iceberg import requirements, updates
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable, Identifier, parse_commit_table
from arco.kernel.canonical_json import JsonValue, request_hash
from arco.kernel.errors import Conflict
from arco.ledger.run_entries import StagedCommit
from arco.ledger.run_state import RunState

Table = tuple[tuple[str, ...], str]


class TableMoved(Exception):
    """Somebody else changed a table that an atomic run stands on: it cannot be published any more."""


def staged_commit(table: Table, request: CommitTable, place: int, asset_id: str | None) -> StagedCommit:
    """A commit as the log keeps it."""
    levels, name = table
    said = {"requirements": request.requirements, "updates": request.updates}
    # As it is read back: whoever asks whether the log has it compares the two.
    written = msgspec.json.decode(msgspec.json.encode(said), type=dict[str, Any])
    return StagedCommit(namespace=levels, name=name, place=place, request=written, asset_id=asset_id)


def request_of(one: StagedCommit) -> CommitTable:
    """A commit as the catalog takes it."""
    return msgspec.structs.replace(parse_commit_table(one.request), identifier=Identifier(one.namespace, one.name))


def commits_of(state: RunState) -> list[StagedCommit]:
    """Everything that a run will do, table by table, in the order in which it was staged."""
    return [one for _, commits in sorted(state.staged_commits.items()) for one in commits]


def hash_of(commits: Sequence[StagedCommit]) -> str:
    """What the key of the transaction is bound to: the same for everybody who reads the log."""
    document: list[JsonValue] = [[list(one.namespace), one.name, one.request] for one in commits]
    return request_hash(document)


def with_staged(table: TableMetadata | None, commits: Sequence[StagedCommit], now_ms: int) -> TableMetadata | None:
    """A table as the catalog has it, with a run's commits on top; TableMoved if it is not what they stand on."""
    after = table
    for one in commits:
        request = request_of(one)
        after = _applied(after, request, ".".join((*one.namespace, one.name)), now_ms)
    return after


def _applied(table: TableMetadata | None, request: CommitTable, name: str, now_ms: int) -> TableMetadata:
    try:
        if table is None:
            if not requirements.creates(request.requirements):
                raise TableMoved(f"{name} was dropped while this run was at work on it")
            return updates.apply(None, request.updates, now_ms=now_ms)
        requirements.check(request.requirements, table)
    except Conflict as conflict:
        raise TableMoved(f"{name} was changed by somebody else while this run was at work on it") from conflict
    return updates.apply(table, request.updates, now_ms=now_ms)
