"""The fold in plain Python: a shredder of a few lines, joins in memory, state files as JSON.

Two small tables for each head, so that both rules of joining and both kinds of event matter. Events say which key they are about
and a value; one kind is invalid, one is of a version that nobody knows.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from arco.fold.archiving import original
from arco.fold.joins import State, joined
from arco.fold.vocabulary import Column, Group, Kind, Row, Table, Wins
from arco.fold.work import Folded, Refused, StateFile
from arco.kernel.errors import CorruptObject, InvalidInput, NotFound, OutcomeUnknown
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.ledger.envelope import Event, EventType, encode
from arco.ledger.iceberg_events import TABLE_COMMITTED, TableCommitted
from arco.ledger.segment import Segment, decode_segment
from arco.storage.keys import FileName, Head, StateFileKey, Word
from arco.storage.port import Absent, Unknown
from arco.storage.readback import put_settled
from arco_sim.world import Env

SCOPE = Scope.of("t", "w")
HAPPENED = EventType("iceberg.happened.v1")
UNHEARD_OF = EventType("iceberg.happened.v9")


def _text(name: str) -> Column:
    return Column(name, Kind.TEXT, "")


def _things(head: Head) -> Table:
    first = Group("first", Wins.FIRST, (_text("first_value"),))
    last = Group("last", Wins.LAST, (_text("last_value"),))
    return Table("things", head, "one row a thing", (_text("thing"),), (first, last), "thing")


def _commits(head: Head) -> Table:
    group = Group("committed", Wins.FIRST, (_text("event_id"), _text("said")))
    return Table("commits", head, "one row a commit", (_text("commit_key"),), (group,), "commit_key")


TABLES = {head: {one.name: one for one in (_things(head), _commits(head))} for head in (Head.ICEBERG, Head.SEARCH)}


class UnknownVersion(InvalidInput):
    """An event for a later Arco."""

    code = "unknown_version"


def shred(head: Head, event: Event) -> Iterable[tuple[Table, Row]]:
    """What one event contributes."""
    order = f"{event.position} {event.id}"
    if event.type == TABLE_COMMITTED:
        said = TableCommitted.of(event)
        metadata = "" if said.metadata is None else said.metadata.location
        yield (
            TABLES[head]["commits"],
            {"commit_key": said.commit_key, "event_id": event.id, "said": metadata, "committed_order": order},
        )
    elif event.type == HAPPENED:
        if "thing" not in event.data:
            raise InvalidInput(f"event {event.id} is about nothing")
        value = event.data["value"]
        row = {"thing": event.data["thing"], "first_value": value, "last_value": value}
        # Not by position: an event that is stored twice has two, and the value must not matter.
        yield TABLES[head]["things"], {**row, "first_order": f"{value} {order}", "last_order": f"{value} {order}"}
    else:
        raise UnknownVersion(f"event {event.id} is {event.type}")


class PlainWork:
    """Executes the fold through the store, step by step, so that every step can fail."""

    def __init__(self, env: Env) -> None:
        self._env = env

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        states: dict[str, State] = {}
        refused: list[Refused] = []
        writers: list[tuple[str, int]] = []
        positions: list[str] = []
        for name in segments:
            segment = await self._read(name, refused)
            if segment is None:
                continue
            writers.append((segment.writer_id, segment.writer_seq))
            for event in segment.events:
                positions.append(event.position)
                _contribute(head, name, event, states, refused)
        files = [await self._write(head, table, state, into, positions) for table, state in sorted(states.items())]
        bad = sum(one.event_id is not None for one in refused)
        return Folded(tuple(files), len(positions) - bad, tuple(refused), tuple(writers))

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        states: dict[str, State] = {}
        positions: dict[str, list[str]] = {}
        for file in files:
            table = TABLES[head][file.table]
            joined(table, await self.rows(file), states.setdefault(file.table, {}))
            span = (file.first_position, file.last_position)
            positions.setdefault(file.table, []).extend(one for one in span if one is not None)
        written = [await self._write(head, table, state, into, positions[table]) for table, state in sorted(states.items())]
        return tuple(written)

    async def rows(self, file: StateFile) -> list[dict[str, Any]]:
        found = await self._env.store.get(file.key)
        if found is None:
            raise NotFound(f"{file.key} is gone")
        if content_hash(found.data) != file.checksum:
            raise CorruptObject(f"{file.key} is not what was written")
        rows: list[dict[str, Any]] = json.loads(found.data)
        return rows

    async def _read(self, name: str, refused: list[Refused]) -> Segment | None:
        found = await self._env.store.get(name)
        if found is None:
            raise NotFound(f"{name} is gone")
        try:
            return decode_segment(original(name), found.data)
        except CorruptObject as error:
            refused.append(Refused(name, None, clip(error.message, 200), b""))
            return None

    async def _write(self, head: Head, table: str, state: State, into: str, positions: list[str]) -> StateFile:
        rows = [state[key] for key in sorted(state)]
        data = json.dumps(rows, sort_keys=True).encode()
        key = str(StateFileKey(SCOPE, head, Word(table), FileName(f"{into}.json")))
        put = put_settled(self._env.store, key, data, Absent(), clock=self._env.clock, entropy=self._env.entropy)
        outcome = await put
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"{key} may be stored")
        return StateFile(
            table=table,
            key=key,
            checksum=content_hash(data),
            rows=len(rows),
            bytes=len(data),
            buckets=(0,),
            least=min(state),
            greatest=max(state),
            first_position=min(positions, default=None),
            last_position=max(positions, default=None),
        )


def _contribute(head: Head, name: str, event: Event, states: dict[str, State], refused: list[Refused]) -> None:
    try:
        contributions = list(shred(head, event))
    except InvalidInput as error:
        unknown = isinstance(error, UnknownVersion)
        refused.append(Refused(name, event.id, error.message, encode(event), unknown=unknown))
        return
    for table, row in contributions:
        joined(table, [row], states.setdefault(table.name, {}))
