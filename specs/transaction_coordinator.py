"""The coordinator in the transaction model: one request, from the claim of its record to the last pointer.

Every method yields the storage steps that are possible at one place. Waiting is having no step. What it does with its own record
before anything is prepared is in `transaction_claims.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from specs.explorer import Shared, Step
from specs.transaction_claims import Claiming
from specs.transaction_places import looking, owed
from specs.transaction_world import COUNTS, DROP, FAILED, FREE, NOT_DONE, At, World, named, written


class Coordinator(Claiming):
    """One request with a transaction's key: claim the record, prepare every table, decide, finalize."""

    def __init__(self, world: World, transaction: int, record: int) -> None:
        super().__init__(world, transaction, record)
        self.name = f"transaction {transaction + 1}"
        self._places: dict[str, Callable[[Shared, At], Iterator[Step]]] = {
            "early": self._early,
            "early ask": self._early_ask,
            "arrive": self._arrive,
            "unsent": self._unsent,
            "new": self._new,
            "doubt": self._doubt,
            "look": self._look,
            "take": self._take,
            "door": self._door,
            "prepare": self._prepare,
            "ask": self._ask,
            "kill": self._kill,
            "owe": self._owe,
            "ready": self._ready,
            "decide": self._decide,
            "refuse": self._refuse,
            "leave": self._leave,
            "leave again": self._leave_again,
            "heard": self._heard,
            "told": self._asks_again,
            "settle": self._settle,
            "finish": self._finish,
            "sealing": self._sealing,
            "seal": self._seal,
        }

    def steps(self, shared: Shared, at: At) -> Iterator[Step]:
        return self._places[at.place](shared, at) if at.place != "end" else iter(())

    # Prepare: the tables in any order.

    def _prepare(self, shared: Shared, at: At) -> Iterator[Step]:
        if at.table != FREE:
            yield from self._usable(shared, at, f"goes on with pointer {at.table + 1} as it was before the claim")
            return
        if self._world.case.fails:
            yield Step("the store cannot be reached", self._leaving(at, "leave"))
        for table in self._world.tables:
            if at.entries[table] == FREE:
                yield from self._read(shared, at._replace(held=at.held & 1 << self._record | 1 << table, table=table))

    def _read(self, shared: Shared, at: At) -> Iterator[Step]:
        chain, pending = shared[at.table]
        action = f"reads pointer {at.table + 1}"
        if DROP in chain:
            yield Step(f"{action}: the table is gone", self._refusing(at))
            if self._may_begin(at):
                yield Step(f"{action}: the table is gone; looks for its name again", self._leaving(at, "leave again"))
        elif not pending:
            yield from self._usable(shared, at, f"{action}: nothing is pending")
        elif pending[0] != self._number:
            yield Step(f"{action}: transaction {self._world.keys[pending[0]] + 1} is pending", at._replace(place="ask"))
        elif pending[1] == at.attempt or (pending[1] < at.attempt and not self._world.on("own_pendings_only")):
            yield Step(f"{action}: finds its own pending", self._prepared(at, pending[2]))
        elif pending[1] < at.attempt or not self._world.on("older_attempt_yields"):
            yield from self._usable(shared, at, f"{action}: attempt {pending[1]} of its own is pending")
        else:
            yield Step(f"{action}: a later attempt is at work", self._leaving(at, "leave"))

    def _usable(self, shared: Shared, at: At, action: str) -> Iterator[Step]:
        """The pointer may be written: unless a requirement fails on what the table is now."""
        chain = self._world.based(shared, at.table, counts=at.extra == COUNTS)
        is_name = self._world.is_name(at.table)
        if not (is_name and chain):
            owes = self._world.case.receipts and self._world.on("receipts_before_prepare")
            yield Step(action, at._replace(place="owe" if owes and chain else "ready"))
        if chain and (is_name or self._world.case.refuses):
            yield Step(f"{action}; a requirement fails", self._refusing(at))

    def _ask(self, shared: Shared, at: At) -> Iterator[Step]:
        number = shared[at.table][1][0]
        other = self._world.keys[number]
        action = f"reads the record of transaction {other + 1}"
        if self._world.counts(shared, at.table):
            yield from self._usable(shared, at._replace(extra=COUNTS), f"{action}: it counts")
        elif not self._world.may_decide(shared, at.table):
            yield from self._usable(shared, at, f"{action}: the pending does not count")
        else:
            if self._me < other or self._world.case.stale or not self._world.on("smaller_id_wins"):
                held = at.held & 1 << self._record | 1 << self._world.records[number]
                yield Step(f"{action}: preparing", at._replace(held=held, place="kill", table=FREE, extra=number))
            if self._me > other:
                yield Step(f"{action}: preparing; gives up", self._leaving(at, "leave"))
        if not self._world.on("fail_closed"):
            yield Step(f"{action}: it cannot be read", at._replace(place="ready"), lost=True)

    def _kill(self, shared: Shared, at: At) -> Iterator[Step]:
        index = self._world.records[at.extra]
        action = f"txn.sent_back transaction {self._world.keys[at.extra] + 1}"
        back = self._back(at)
        yield from written(action, index, self._world.sent_back(shared, at.extra), back, back)

    def _owe(self, shared: Shared, at: At) -> Iterator[Step]:
        yield owed(self._world, shared, at, "ready")

    def _ready(self, shared: Shared, at: At) -> Iterator[Step]:
        """What counts of the pending that is there becomes part of the chain, what does not is gone, by the same write."""
        chain = self._world.based(shared, at.table, counts=at.extra == COUNTS)
        pending = (self._number, at.attempt, len(chain))
        what = "txn.reserved name" if self._world.is_name(at.table) else "txn.prepared pointer"
        action = f"{what} {at.table + 1}, attempt {at.attempt}"
        yield from written(action, at.table, (chain, pending), self._prepared(at, len(chain)), self._back(at))

    def _prepared(self, at: At, location: int) -> At:
        entries = (*at.entries[: at.table], location, *at.entries[at.table + 1 :])
        after = self._back(at)._replace(entries=entries)
        if FREE in entries:
            return after
        if self._holds_record(after):
            return after._replace(place="decide")
        return self._again(at) if self._world.on("claimed_version") else after._replace(place="settle")

    def _back(self, at: At) -> At:
        return at._replace(held=at.held & 1 << self._record, place="prepare", table=FREE, extra=FREE)

    # The decision; or none.

    def _decide(self, shared: Shared, at: At) -> Iterator[Step]:
        value = ("C", at.attempt, at.entries)
        decided = self._decided(at)
        told = self._world.tell(shared, self._me, 1 << at.attempt)
        silent = at._replace(place="settle")
        if self._world.on("silence_is_read_back"):
            yield from written("txn.decided", self._record, value, decided, silent, told)
            return
        yield Step("txn.decided", decided, ((self._record, value), told))
        failed = self._world.tell(shared, self._me, FAILED)
        yield Step("txn.decided, the reply is lost: tells a failure", silent, ((self._record, value), failed), lost=True)

    def _refusing(self, at: At) -> At:
        if not self._holds_record(at) and self._world.on("refusal_is_durable"):
            return looking(self._world, at)
        return self._back(at)._replace(place="refuse", entries=self._world.no_entries)

    def _refuse(self, shared: Shared, at: At) -> Iterator[Step]:
        told = self._world.tell(shared, self._me, FAILED)
        if not self._world.on("refusal_is_durable"):
            yield Step("tells a failure", self._end(), (told,))
            return
        silent = at._replace(place="settle")
        yield from written("txn.aborted: refuses", self._record, ("A", at.attempt), self._end(), silent, told)

    def _leaving(self, at: At, place: str) -> At:
        """About to end this attempt: with an answer that says so, or to begin the next at once."""
        if self._holds_record(at) or (place == "leave" and not self._world.on("sent_back_before_503")):
            return self._back(at)._replace(place=place, entries=self._world.no_entries)
        return self._again(at) if place == "leave again" else self._end()

    def _leave(self, shared: Shared, at: At) -> Iterator[Step]:
        """503, after which the client asks again if it may."""
        if not self._world.on("sent_back_before_503"):
            yield self._says_503("tells 503", shared, at)
            return
        sent_back = (self._record, ("W", at.attempt))
        yield self._says_503("txn.sent_back: gives up, and tells 503", shared, at, sent_back)
        heard = at._replace(held=0, place="heard")
        yield Step("txn.sent_back: gives up, but the reply is lost", heard, (sent_back,), lost=True)
        yield Step("txn.sent_back? no: it has no effect, and no reply", at, lost=True)

    def _heard(self, shared: Shared, at: At) -> Iterator[Step]:
        """The id of its write is in the record, whoever wrote it since."""
        if shared[self._record] == ("W", at.own) or not self._world.on("overtaken_is_judged"):
            yield self._says_503("reads its record: it was sent back; tells 503", shared, at)
        else:
            yield Step("reads its record: others wrote it since; the outcome stays open", self._end())

    def _says_503(self, action: str, shared: Shared, at: At, *writes: tuple[int, Any]) -> Step:
        """It is not done now, whoever listens; and must not be done later, if its client still does."""
        is_seen = any(self._me in self._world.effective(shared, table) for table in self._world.tables)
        wrong = named("K", f"transaction {self._me + 1} is told as not done, and is visible") if is_seen else ""
        listens = self._world.is_latest(shared, self._me, at.sent)
        told = (self._world.tell(shared, self._me, NOT_DONE),) if listens else ()
        return Step(action, self._told(at), (*writes, *told), broken=wrong)

    def _told(self, at: At) -> At:
        return self._back(at)._replace(held=0, place="told", attempt=0, own=0) if self._may_begin(at) else self._end()

    def _asks_again(self, shared: Shared, at: At) -> Iterator[Step]:
        number, asks = self._world.asks(shared, self._me)
        yield Step("its client asks again", self._again(at._replace(sent=number)), (asks,))

    def _leave_again(self, _shared: Shared, at: At) -> Iterator[Step]:
        after = self._again(at)
        yield from written("txn.sent_back: its attempt ends", self._record, ("W", at.attempt), after, after)

    # Afterwards: the receipt, then the pointer.

    def _finish(self, shared: Shared, at: At) -> Iterator[Step]:
        for table in self._world.tables:
            if at.entries[table] == FREE:
                continue
            here = at._replace(table=table)
            if self._world.case.receipts:
                index = self._world.receipts[table]
                value = shared[index] | 1 << at.entries[table]
                action = f"txn.receipts_written of pointer {table + 1}"
                yield Step(action, here._replace(place="sealing"), ((index, value),))
            else:
                yield from self._sealing(shared, here)

    def _sealing(self, shared: Shared, at: At) -> Iterator[Step]:
        action = f"reads pointer {at.table + 1}"
        if shared[at.table][1] == (self._number, at.attempt, at.entries[at.table]):
            yield Step(f"{action}: its own pending", at._replace(held=1 << at.table, place="seal"))
        else:
            yield Step(f"{action}: finalized already", self._closed(at))

    def _seal(self, shared: Shared, at: At) -> Iterator[Step]:
        value = (self._world.based(shared, at.table, counts=True), ())
        silent = at._replace(held=0, place="finish", table=FREE)
        what = "txn.named name" if self._world.is_name(at.table) else "txn.finalized pointer"
        yield from written(f"{what} {at.table + 1}", at.table, value, self._closed(at), silent)

    def _closed(self, at: At) -> At:
        entries = (*at.entries[: at.table], FREE, *at.entries[at.table + 1 :])
        if all(entry == FREE for entry in entries):
            return self._end()
        return at._replace(held=0, place="finish", entries=entries, table=FREE)
