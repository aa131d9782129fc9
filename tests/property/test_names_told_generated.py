"""What the ledger is told of names adds up to the names, whatever was told first, twice or late."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arco.catalog.manifest import Commit
from arco.catalog.model import Entry, Format, Governance, Kind, Reservation
from arco.catalog.name_events import name_events
from arco.catalog.names import Draft, Names
from arco.catalog.operations import (
    Confirm,
    Create,
    CreateNamespace,
    Describe,
    Drop,
    Operation,
    Purge,
    Release,
    Rename,
    Reserve,
    Undrop,
    Void,
)
from arco.fold.joins import State, joined
from arco.fold.shredding import shred_for
from arco.fold.tables import CATALOG_TABLES
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError
from arco.kernel.ids import EventId, encode_ulid
from arco.kernel.position import Position
from arco.ledger.drafts import seal
from arco.ledger.envelope import Event
from arco.storage.keys import Head
from fixtures.fold.histories import BEGIN_MS, SCOPE, ulid

promise = settings(max_examples=150)
choices = st.randoms(use_true_random=False)
UUIDS = tuple(f"0192e1d0-0000-7000-8000-00000000000{number}" for number in range(3))
NAMES = ("orders", "Lines", "größe")


class Chain:
    """Commits of operations that applied, and the names that they add up to."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.names = Names()
        self.ever: dict[str, Entry] = {}
        self.commits: list[Commit] = []
        self._drops = 0
        self._commit([CreateNamespace(key_hash="k", id=ulid(7), levels=("shop",), properties={})])

    def grow(self) -> None:
        self._commit([self._operation() for _ in range(self.pick.randrange(1, 4))])

    def _commit(self, wanted: list[Operation]) -> None:
        draft, applied, at_ms = Draft(self.names), [], BEGIN_MS + len(self.commits)
        for operation in wanted:
            try:
                draft.apply(operation, at_ms)
            except ArcoError:
                continue
            applied.append(operation)
        draft.merge()
        number = len(self.commits) + 1
        self.commits.append(Commit(ulid(500 + number), number, None, None, at_ms, "ann", None, tuple(applied)))

    def _operation(self) -> Operation:
        often = (self._create, self._create, self._drop, self._drop, self._undrop, self._rename, self._describe)
        makers = (*often, self._purge, self._reserve, self._decide, self._decide, lambda _: Void(key_hash="k"))
        return self.pick.choice(makers)(self.pick.choice(UUIDS))

    def _create(self, uuid: str) -> Create:
        dropped, live = self.names.dropped.get(uuid), self.names.by_uuid(uuid)
        binding = 1 + max(one.binding for one in (live, dropped and dropped.entry) if one) if live or dropped else 1
        people = self.pick.choice((Governance(), Governance(owner="ann", tags=("raw",), description="all of them")))
        entry = Entry(
            uuid, ulid(3), self.pick.choice(tuple(Kind)), Format.ICEBERG, ("shop",), self.pick.choice(NAMES),
            f"s3://lake/{self.pick.randrange(3)}", binding, BEGIN_MS, BEGIN_MS, governance=people,
        )  # fmt: skip
        return Create(key_hash="k", entry=entry, minted_ms=1, revives=dropped.drop_id if dropped else None)

    def _drop(self, uuid: str) -> Operation:
        live = self.names.by_uuid(uuid)
        if live is None:
            return Void(key_hash="k")
        heir = self._create(self.pick.choice(UUIDS)) if self.pick.randrange(3) == 0 else None
        self._drops += 1
        return Drop(
            key_hash="k", uuid=uuid, binding=live.binding, drop_id=ulid(900 + self._drops), purge=False, principal="bea",
            successor=heir,
        )  # fmt: skip

    def _undrop(self, uuid: str) -> Operation:
        dropped = self.names.dropped.get(uuid)
        if dropped is None:
            return Void(key_hash="k")
        name = self.pick.choice(NAMES)
        return Undrop(key_hash="k", uuid=uuid, drop_id=dropped.drop_id, namespace=("shop",), name=name)

    def _rename(self, uuid: str) -> Operation:
        live = self.names.by_uuid(uuid)
        name = self.pick.choice(NAMES)
        return Rename(key_hash="k", uuid=uuid, binding=live.binding if live else 0, namespace=("shop",), name=name)

    def _describe(self, uuid: str) -> Describe:
        said: dict[str, Any] = {"owner": None, "description": "other", "tags": ["gold"], "row_count": 3}
        fields = {name: said[name] for name in self.pick.sample(sorted(said), self.pick.randrange(1, 5))}
        return Describe(key_hash="k", uuid=uuid, governance=fields)

    def _reserve(self, uuid: str) -> Reserve:
        return Reserve(key_hash="k", reservation=Reservation(self._create(uuid).entry, "tx", 1, "location"), minted_ms=1)

    def _decide(self, _: str) -> Operation:
        """What becomes of a name that a transaction keeps."""
        if not self.names.reserved:
            return Void(key_hash="k")
        kept = self.pick.choice(list(self.names.reserved.values()))
        return self.pick.choice((Confirm, Release))(key_hash="k", reservation=kept)

    def _purge(self, uuid: str) -> Operation:
        dropped = self.names.dropped.get(uuid)
        return Void(key_hash="k") if dropped is None else Purge(key_hash="k", uuid=uuid, drop_id=dropped.drop_id)


def told(commit: Commit, positions: SeededEntropy, pick: random.Random) -> list[Event]:
    """The events of a commit, at positions that say nothing of its place in the chain."""
    found = []
    for draft in name_events(commit):
        tick = BEGIN_MS + pick.randrange(1000)
        position = Position(encode_ulid((tick << 16) << 64 | int.from_bytes(positions.token_bytes(8), "big")))
        found.append(seal(draft, SCOPE, fresh_id=EventId(ulid(0)), position=position, now_ms=BEGIN_MS))
    return found


def rows(events: list[Event]) -> State:
    return joined(CATALOG_TABLES, (row for event in events for _, row in shred_for(Head.ASSETS, event)))


@promise
@given(choices, st.integers(1, 12))
def test_what_was_told_adds_up_to_the_names(pick: random.Random, commits: int) -> None:
    chain, positions = Chain(pick), SeededEntropy("positions")
    for _ in range(commits):
        chain.grow()
    events = [event for commit in chain.commits for event in told(commit, positions, pick)]
    # Some commits are told twice, by somebody who died in between; all of it arrives in any order.
    events += [event for commit in chain.commits if pick.randrange(3) == 0 for event in told(commit, positions, pick)]
    pick.shuffle(events)
    state = rows(events)
    live = {key[0]: row for key, row in state.items() if not row["dropped"]}
    assert live.keys() == chain.names.places.keys()
    for uuid, row in live.items():
        entry = chain.names.by_uuid(uuid)
        assert entry is not None
        people = entry.governance
        said = (row["table"], row["kind"], row["location"], row["asset_id"], row["owner"], row["description"])
        assert said == (entry.full_name, entry.kind, entry.location, entry.asset_id, people.owner, people.description)
        assert tuple(row["tags"]) == people.tags
    for uuid, dropped in chain.names.dropped.items():
        row = state[uuid,]
        assert (row["dropped"], row["drop_id"], row["dropped_by"]) == (True, dropped.drop_id, "bea")
        assert (row["table"], row["dropped_at"]) == (dropped.entry.full_name, dropped.dropped_ms)


@promise
@given(choices, st.integers(1, 8))
def test_told_twice_it_is_the_same_event(pick: random.Random, commits: int) -> None:
    chain = Chain(pick)
    for _ in range(commits):
        chain.grow()
    for commit in chain.commits:
        assert name_events(commit) == name_events(commit)
    ids = [draft.id for commit in chain.commits for draft in name_events(commit)]
    assert len(set(ids)) == len(ids)
