"""Beginning a transaction in the model: one request claims its key's record, takes it over, or hears what it says.

A request may begin several attempts, one after the other: the next begins where its record waits, or where whoever works on it is
taken for dead. What is done with tables is not here.
"""

from collections.abc import Iterator

from specs.explorer import Shared, Step
from specs.transaction_places import ended, looking
from specs.transaction_world import COUNTS, DROP, FAILED, FREE, TOO_OLD, YOUNG, At, World


class Claiming:
    """The part of a coordinator that is about its own record."""

    def __init__(self, world: World, transaction: int, record: int) -> None:
        self._world = world
        self._me = transaction
        self._number = record
        self._record = world.records[record]

    def first(self) -> At:
        if self._world.case.fails:
            return At(0, "unsent", entries=self._world.no_entries)
        place = "early" if self._world.case.early else "arrive" if self._world.case.ages else "new"
        return At(0, place, entries=self._world.no_entries)

    def _end(self) -> At:
        return ended(self._world)

    def _holds_record(self, at: At) -> bool:
        return bool(at.held >> self._record & 1)

    def _may_begin(self, at: At) -> bool:
        return at.begun < self._world.case.attempts

    def _again(self, at: At) -> At:
        return looking(self._world, at) if self._may_begin(at) else self._end()

    def _arrive(self, shared: Shared, at: At) -> Iterator[Step]:
        if shared[self._world.age] == YOUNG:
            yield Step("the key is young enough", at._replace(place="new"))
        else:
            yield Step("the key is too old: refused at the door", self._end())

    def _early(self, shared: Shared, at: At) -> Iterator[Step]:
        """What a pointer says is read beside the claim, or was remembered: so it may be older."""
        for table in self._world.tables:
            chain, pending = shared[table]
            here = at._replace(held=1 << table, table=table, place="early ask" if pending else "new")
            if DROP not in chain and not self._world.is_name(table):
                yield Step(f"reads pointer {table + 1} before its claim", here)

    def _early_ask(self, shared: Shared, at: At) -> Iterator[Step]:
        number = shared[at.table][1][0]
        action = f"reads the record of transaction {self._world.keys[number] + 1} before its claim"
        if self._world.counts(shared, at.table):
            yield Step(f"{action}: it counts", at._replace(place="new", extra=COUNTS))
        elif number == self._number or not self._world.may_decide(shared, at.table):
            yield Step(f"{action}: it will not count beside its own claim", at._replace(place="new"))
        else:
            yield Step(f"{action}: preparing", self.first()._replace(place="new"))

    def _unsent(self, shared: Shared, at: At) -> Iterator[Step]:
        """It may be on its way for long before its first step."""
        number, asks = self._world.asks(shared, self._me)
        yield Step("its client asks", at._replace(place="new", sent=number), (asks,))

    def _new(self, shared: Shared, at: At) -> Iterator[Step]:
        found = shared[self._record]
        number, asks = self._world.asks(shared, self._me)
        if self._world.case.fails:
            asks = (asks[0], shared[asks[0]])
        else:
            at = at._replace(sent=number)
        if found is not None and found[0] != "G":
            yield Step("finds its record", at._replace(place="look"), (asks,))
            return
        silent = at._replace(place="doubt", attempt=1, begun=1)
        held = silent._replace(held=at.held | 1 << self._record, own=1)
        claim = (self._record, ("P", 1))
        yield Step("txn.claimed: creates its record", self._claimed(held), (claim, asks))
        yield Step("txn.claimed: creates its record, but the reply is lost", held, (claim, asks), lost=True)
        yield Step("txn.claimed? no: it has no effect, and no reply", silent, (asks,), lost=True)

    def _claimed(self, at: At) -> At:
        asks = self._world.case.ages and self._world.on("age_after_claim" if at.attempt == 1 else "age_after_takeover")
        preset = at.entries
        if not self._world.on("name_reserved_first"):
            preset = (*preset[:-1], 0)
        return at._replace(place="door" if asks else "prepare", entries=preset)

    def _doubt(self, shared: Shared, at: At) -> Iterator[Step]:
        if self._holds_record(at) and shared[self._record] == ("P", at.attempt):
            yield Step("reads its record: the claim is its own", self._claimed(at))
        else:
            # No attempt was begun: the next try is as good as this one.
            unbegun = at._replace(begun=at.begun - 1)
            yield Step("reads its record: the claim is not its own", looking(self._world, unbegun))

    def _look(self, shared: Shared, at: At) -> Iterator[Step]:
        """What the record says: the outcome, that the next attempt may begin, or that somebody is at work."""
        found = shared[self._record]
        if found is None or found[0] == "G":
            yield Step("reads its record: there is none", self._end())
        elif found[0] == "C" or (found[0] == "A" and self._world.on("aborted_is_final")):
            yield from self._answer(shared, at, "end")
        else:
            action = f"reads its record: {found[0]}, attempt {found[1]}"
            may_begin = self._may_begin(at) and not self._was_sent_before(shared, at)
            if may_begin and (found[0] != "P" or self._world.case.stale):
                rises = found[0] != "W" or self._world.on("attempt_rises")
                yield Step(action, at._replace(held=at.held | 1 << self._record, place="take", attempt=found[1] + rises))
            else:
                yield Step(f"{action}; the outcome stays open", self._end())

    def _was_sent_before(self, shared: Shared, at: At) -> bool:
        """Whether the record waits, and the client may have been told so by a request that it sent later than this one.

        A later request was sent much later: whoever sends the next one has waited for this one for a while.
        """
        found = shared[self._record]
        if found[0] != "W":
            return False
        if at.own:
            return bool(found[1] > at.own and self._world.on("passed_by_stays"))
        return not self._world.is_latest(shared, self._me, at.sent) and self._world.on("long_under_way_stays")

    def _take(self, _shared: Shared, at: At) -> Iterator[Step]:
        action = f"txn.claimed: attempt {at.attempt} begins"
        silent = at._replace(place="doubt", begun=at.begun + 1)
        begun = silent._replace(own=at.attempt)
        claim = ((self._record, ("P", at.attempt)),)
        yield Step(action, self._claimed(begun), claim)
        yield Step(f"{action}, but the reply is lost", begun, claim, lost=True)
        yield Step(f"{action}? no: it has no effect, and no reply", silent, lost=True)

    def _door(self, shared: Shared, at: At) -> Iterator[Step]:
        if shared[self._world.age] == YOUNG:
            yield Step("the key is still young enough", at._replace(place="prepare"))
        else:
            yield Step("the key is too old by now: nothing more is done", self._end())

    def _settle(self, shared: Shared, at: At) -> Iterator[Step]:
        """A decision or refusal had no reply, or its record was lost on the way: look what it says."""
        found = shared[self._record]
        is_whole = FREE not in at.entries
        if found is not None and found[0] == "P" and self._holds_record(at):
            yield Step("reads its record: preparing", at._replace(place="decide" if is_whole else "refuse"))
        elif found is not None and found[0] == "P" and is_whole and not self._world.on("claimed_version"):
            told = self._world.tell(shared, self._me, 1 << at.attempt)
            value = ("C", at.attempt, at.entries)
            yield Step("txn.decided on the version it read just now", self._decided(at), ((self._record, value), told))
        elif found is not None and found[:2] == ("C", at.attempt) and is_whole and self._world.case.finishes:
            yield from self._answer(shared, at, "finish")
        else:
            yield from self._look(shared, looking(self._world, at))

    def _decided(self, at: At) -> At:
        return at._replace(held=0, place="finish", begun=0) if self._world.case.finishes else self._end()

    def _answer(self, shared: Shared, at: At, place: str) -> Iterator[Step]:
        """Tell what a decided record says, as long as it can be about this key's first life."""
        found = shared[self._record]
        after = self._decided(at) if place == "finish" else self._end()
        answer = 1 << found[1] if found[0] == "C" else FAILED
        too_old = shared[self._world.age] >= TOO_OLD and self._world.on("age_after_claim")
        told = () if too_old and found[0] == "A" else (self._world.tell(shared, self._me, answer),)
        yield Step(f"reads its record: {found[0]}, attempt {found[1]}; answers", after, told)
