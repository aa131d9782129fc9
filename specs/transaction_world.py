"""What the actors of the transaction model share: the objects, the guards that can be switched off, what counts.

Pointer: (chain, pending). The chain is all commits of a table, oldest first, so it is its history as well. A pending is (record,
attempt, location); a location is the number of commits below it, as in the name of a metadata file.
Record: None; P(reparing), W(aiting) or A(borted), with the attempt; C(ommitted), with the locations by table as well; G(one) once
it was collected.
No actor's behaviour enters this file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from specs.explorer import Local, Shared, Step

# Names of the actions that are crash points in the code, too (`arco.kernel.crash_points.reach`).
ACTIONS = (
    "txn.claimed",
    "txn.prepared",
    "txn.reserved",
    "txn.decided",
    "txn.aborted",
    "txn.sent_back",
    "txn.receipts_written",
    "txn.finalized",
    "txn.named",
)

GUARDS = {
    "exact_entry": "T1 a pending counts only if the record names exactly its table, location and attempt",
    "record_before_pending": "T2 nobody touches a pending whose attempt may still decide",
    "claimed_version": "T2 the decision is a CAS on the record version of the claim or takeover",
    "writer_resolves": "T3 a commit of one table resolves a pending first",
    "drop_resolves": "T3 a tombstone resolves a pending first",
    "waiting_counts_for_nothing": "T4 a waiting record's pendings count for nothing",
    "attempt_rises": "T4 a record that waits begins again under a higher attempt",
    "aborted_is_final": "T4 an aborted record is never opened again",
    "own_pendings_only": "T4 an attempt counts only the pendings that it wrote",
    "older_attempt_yields": "T4 an attempt stops where it meets a later one of its own",
    "smaller_id_wins": "T5 of two transactions that meet, only the smaller id sends the other back",
    "anyone_may_send_back": "T5 a stale record is sent back by whoever meets it",
    "sent_back_by_cas": "T5 a record is sent back by a CAS on the version that was read as preparing",
    "name_reserved_first": "T6 the name of a staged create is reserved before the decision",
    "effective_names": "T6 a create looks at effective names",
    "etag_is_effective": "T7 an ETag covers the effective metadata location",
    "undecided_not_cached": "T7 the record is read after the pointer; an undecided status is never remembered",
    "one_record_per_key": "T8 the record's path follows from the key alone",
    "receipts_before_prepare": "T9 a prepare or swing ensures the receipts of its effective base",
    "references_looked_for": "T10 a record goes only after every pointer was seen without it",
    "age_after_claim": "T10 the key's age is looked at again after the record was created, and before a refusal is told",
    "age_after_takeover": "T10 the key's age is looked at again after the record was taken over",
    "fail_closed": "only a definite 'no such record' means 'not committed'",
    "refusal_is_durable": "C6 a refusal is in the record before it is told",
    "sent_back_before_503": "C6 'nothing happened, ask again' is told only after the own CAS sent the record back",
    "passed_by_stays": "C8 a request that was passed by a later attempt of its key begins nothing on a record that waits",
    "long_under_way_stays": "C8 a request that has been on its way for long begins nothing on a record that waits",
    "overtaken_is_judged": "C8 who sent its record back and was overtaken tells what the record says now",
    "silence_is_read_back": "C8 a decision without a reply is read back before anything is told",
    "cut_reads_twice": "a cut of several tables is read twice, and both readings agree",
    "cut_compares_what_counts": "the readings of a cut are compared by what counts, not by what is stored",
}

INVARIANTS = {
    "A": "one decision per transaction, immutable",
    "B": "a transaction is seen in all its tables or in none",
    "C": "pointers move only along decided commits",
    "D": "what was acknowledged is decided, and visible",
    "E": "what was aborted or refused is never visible",
    "F": "whatever has stalled can be finished by anyone",
    "G": "nothing is deleted that a pointer still needs",
    "H": "one transaction is never told two outcomes",
    "I": "one key has at most one effect",
    "S": "transactions have the same order in every table",
    "K": "what was told as not done is not done, unless the client asks again",
    "R": "the receipts of all commits below the head exist",
}

FREE = -1  # no table, or a table without an entry
COUNTS = 1  # what an actor remembers of a pending that it found in force
WRITER = 90
DROP = 91
FAILED = 1  # bit of what a client was told; success about attempt n is bit 1 << n
NOT_DONE = 1 << 16  # bit of what it was told last: 503, and it has not asked again
SENT = 17  # above that: how many requests it has sent
YOUNG, TOO_OLD, COLLECTABLE = 0, 1, 2  # the age of a key: accepted, refused at the door, its record may go


class At(NamedTuple):
    """The local state of an actor: what it holds, where it is, and what it remembers."""

    held: int
    place: str
    attempt: int = 0
    entries: tuple[int, ...] = ()
    table: int = FREE
    extra: Any = FREE
    begun: int = 0  # how many attempts it began
    own: int = 0  # the last attempt that was its own
    sent: int = 0  # the how many-th request of its client it is


@dataclass(frozen=True)
class Case:
    """What is explored: how many of each, and the guard that is missing, if one is."""

    tables: int = 2
    transactions: int = 2
    seats: int = 2  # requests with the key of one transaction
    attempts: int = 1  # how many attempts each request may begin
    others: tuple[str, ...] = ()
    early: bool = False  # requests read a pointer before they claim their record, and go on with what they read
    stale: bool = True  # whoever is preparing may be taken for dead at any time
    finishes: bool = True  # coordinators finalize what they decided; else they die right after their decision
    refuses: bool = True  # a requirement may fail on a table that changed
    fails: bool = False  # whoever prepares may find that it cannot, and gives up
    receipts: bool = False
    creates: bool = False  # the last table is a name that the transactions create
    ages: bool = False  # keys grow old, and records are collected
    without: str = ""


class World:
    """The objects of a case by number, and what can be said about them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tables = range(case.tables)
        per_key = 1 if self.on("one_record_per_key") else case.seats
        self.keys = [record // per_key for record in range(case.transactions * per_key)]  # record -> transaction
        self.records = range(case.tables, case.tables + len(self.keys))
        self.receipts = range(self.records.stop, self.records.stop + case.tables)
        self.age = self.receipts.stop
        self.told = range(self.age + 1, self.age + 1 + case.transactions)
        self.writer_told = self.told.stop
        self.no_entries = (FREE,) * case.tables

    def on(self, guard: str) -> bool:
        assert guard in GUARDS, guard
        return self.case.without != guard

    def start(self) -> Shared:
        pointers = [((), ())] * self.case.tables
        return (*pointers, *[None] * len(self.keys), *[0] * self.case.tables, YOUNG, *[0] * self.case.transactions, 0)

    def counts(self, shared: Shared, table: int, pending: Any = None) -> bool:
        """Whether the pending of this table (or one that was read before) is the table's newest commit."""
        record, attempt, location = pending or shared[table][1]
        found = shared[self.records[record]]
        if found is not None and found[0] == "W" and not self.on("waiting_counts_for_nothing"):
            return bool(found[1] == attempt)
        if found is None or found[0] != "C":
            return False
        return not self.on("exact_entry") or (found[1] == attempt and found[2][table] == location)

    def may_decide(self, shared: Shared, table: int) -> bool:
        """Whether the attempt that is pending here could still put it in force."""
        record, attempt, _ = shared[table][1]
        return bool(shared[self.records[record]] == ("P", attempt))

    def effective(self, shared: Shared, table: int) -> tuple[int, ...]:
        return self.based(shared, table, counts=bool(shared[table][1]) and self.counts(shared, table))

    def based(self, shared: Shared, table: int, *, counts: bool) -> tuple[int, ...]:
        """The chain for who found that the pending counts, or that it does not."""
        chain: tuple[int, ...]
        chain, pending = shared[table]
        return (*chain, self.keys[pending[0]]) if counts else chain

    def is_name(self, table: int) -> bool:
        return self.case.creates and table == self.tables[-1]

    def sent_back(self, shared: Shared, record: int) -> Any:
        return ("W", shared[self.records[record]][1])

    def asks(self, shared: Shared, transaction: int) -> tuple[int, tuple[int, int]]:
        """The client sends a request, and from now on hears the answer to this one alone. Its number, and what is written."""
        at = self.told[transaction]
        number = (shared[at] >> SENT) + (self.case.seats > 1)
        return number, (at, number << SENT | shared[at] & NOT_DONE - 1)

    def is_latest(self, shared: Shared, transaction: int, sent: int) -> bool:
        return bool(shared[self.told[transaction]] >> SENT == sent)

    def tell(self, shared: Shared, transaction: int, answer: int) -> tuple[int, int]:
        """What a client hears belongs to the shared state: it must stay true."""
        at = self.told[transaction]
        return at, shared[at] | answer


def named(letter: str, what: str) -> str:
    """What is broken, by the name of its invariant."""
    return f"{letter} ({INVARIANTS[letter]}): {what}"


def written(action: str, index: int, value: Any, landed: Local, silent: Local, *also: tuple[int, Any]) -> Iterator[Step]:
    """A conditional write by somebody who holds the object: it lands; or the reply is lost, with or without the effect."""
    yield Step(action, landed, ((index, value), *also))
    yield Step(f"{action}, but the reply is lost", silent, ((index, value),), lost=True)
    yield Step(f"{action}? no: it has no effect, and no reply", silent, lost=True)
