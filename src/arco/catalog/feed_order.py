"""In which order what was found goes into the feed: pure, from names that changed and commits that have receipts.

    names        as the chain of tier 1 has them
    commits      of one table by their numbers, none left out; of one transaction together, at one place
    between them by time, and what makes a table comes before the commits of it

A commit waits as long as the one before it may still turn up, and a transaction as long as one of its parts may. What waits holds
up what comes after it, and nothing else. A table that a transaction made is told with it: what became of its name comes after
that, unless the transaction has to wait. What is behind the last commit told of its table is no news, but for a gap: a number
that was passed because its receipt was lost or could not be read. What must never enter: how anything was found, and what an
event says.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from arco.catalog.manifest import Commit
from arco.catalog.operations import Confirm, Create, Drop
from arco.catalog.transaction_records import Part
from arco.ledger.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Together:
    """Commits that became visible at once: those of a transaction, or one alone."""

    receipts: tuple[Receipt, ...]

    @property
    def at_ms(self) -> int:
        return max(one.commit.at_ms for one in self.receipts)


Item = Commit | Together


@dataclass(frozen=True, slots=True)
class Found:
    """What a look found. `confirmed` are receipts whose predecessors, and the other parts of whose transactions, would have been
    found if they were there.

    `parts` has what the record of each transaction says; a transaction that is not in it cannot be told yet. None: the record is
    gone, and what was found is all there is.
    """

    names: Sequence[Commit]
    receipts: Mapping[str, Receipt]
    confirmed: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[Part] | None] = field(default_factory=dict)


def arranged(found: Found, last: Mapping[str, int]) -> list[Item]:
    """What can be told now, in order. `last` is the number of each table's last commit that was told."""
    ready: list[Item] = [*found.names, *_complete(found)]
    held, firm, makings = _held(ready, found, last), _successors(ready, found), _makings(ready, found)
    order = _in_turn(ready, held, firm, makings)
    if not makings or len(order) == len(ready):
        return order
    # A transaction that cannot be told yet does not hold up the names: there are many, and it may wait for long.
    without = _in_turn(ready, held, firm)
    return order if len(order) == len(without) else without


def _in_turn(ready: Sequence[Item], held: set[int], *afters: Mapping[int, Sequence[int]]) -> list[Item]:
    """What does not wait, by time. Each of `afters` says what comes after what, by place."""
    after: dict[int, list[int]] = {}
    waiting = dict.fromkeys(range(len(ready)), 0)
    for some in afters:
        for earlier, places in some.items():
            after.setdefault(earlier, []).extend(places)
            for later in places:
                waiting[later] += 1
    # Of two at one time names come first, and then what was found first.
    free = [(ready[place].at_ms, place) for place in waiting if not waiting[place] and place not in held]
    heapq.heapify(free)
    order: list[Item] = []
    while free:
        _, place = heapq.heappop(free)
        order.append(ready[place])
        for one in after.get(place, ()):
            waiting[one] -= 1
            if not waiting[one] and one not in held:
                heapq.heappush(free, (ready[one].at_ms, one))
    return order


def unmade(found: Found, last: Mapping[str, int]) -> set[str]:
    """The tables that transactions made, whose names were found, and whose making was neither told nor found."""
    there = by_number(found.receipts)
    return {uuid for one in found.names for uuid in _confirmed(one) if uuid not in last and (uuid, 0) not in there}


def is_gap(receipt: Receipt, there: Mapping[tuple[str, int], object], last: Mapping[str, int]) -> bool:
    """Whether the commit before this one was neither told nor found."""
    uuid, number = receipt.table_uuid, receipt.commit.commit_number
    return number > 0 and last.get(uuid, -1) < number - 1 and (uuid, number - 1) not in there


def is_past(receipt: Receipt, last: Mapping[str, int], gaps: Mapping[str, Sequence[int]]) -> bool:
    """Whether a commit was told, or collected before the feed began.

    A server that loaded the table long ago makes sure of the receipt of what it loaded, and so writes one again that was
    collected. Its name may be forgotten by then; its number is not.
    """
    uuid, number = receipt.table_uuid, receipt.commit.commit_number
    return number <= last.get(uuid, -1) and number not in gaps.get(uuid, ())


def gaps_after(
    told: Iterable[Receipt], last: Mapping[str, int], gaps: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """The numbers that are passed by untold once these are told, of each table for which that changes.

    Those before the first that is told of a table are none: they were collected before the feed began.
    """
    numbers: dict[str, set[int]] = {}
    for one in told:
        numbers.setdefault(one.table_uuid, set()).add(one.commit.commit_number)
    changed: dict[str, tuple[int, ...]] = {}
    for uuid, some in numbers.items():
        before = gaps.get(uuid, ())
        passed = range(last.get(uuid, min(some)) + 1, max(some))
        after = tuple(sorted({*before, *passed} - some))
        if after != tuple(before):
            changed[uuid] = after
    return changed


def by_number(receipts: Mapping[str, Receipt]) -> dict[tuple[str, int], str]:
    return {(one.table_uuid, one.commit.commit_number): name for name, one in receipts.items()}


def incomplete(found: Found) -> dict[str, frozenset[Part]]:
    """The parts of transactions that have no receipt yet, by transaction."""
    there = {(one.commit.transaction, one.table_uuid) for one in found.receipts.values()}
    missing = {
        transaction: frozenset(part for part in parts if (transaction, part.table_uuid) not in there)
        for transaction, parts in found.parts.items()
        if parts is not None
    }
    return {transaction: parts for transaction, parts in missing.items() if parts}


def completed(found: Found, unsure: AbstractSet[str], unreadable: AbstractSet[str]) -> dict[str, Receipt]:
    """The receipts for which everything was done that what they wait for turns up.

    `unsure` are tables whose last swing is not known, `unreadable` transactions of which nobody knows what their parts are.
    """
    waiting = {one for one, parts in incomplete(found).items() if any(part.table_uuid in unsure for part in parts)}
    return {
        name: one
        for name, one in found.receipts.items()
        if one.table_uuid not in unsure and one.commit.transaction not in waiting | unreadable
    }


def _complete(found: Found) -> list[Together]:
    groups: dict[str, dict[str, Receipt]] = {}
    for name, receipt in found.receipts.items():
        groups.setdefault(receipt.commit.transaction or name, {})[name] = receipt
    # What would have been found by now is lost, or cannot be read: the others are told without it.
    missing = {group for group in incomplete(found) if not found.confirmed.issuperset(groups.get(group, ()))}
    return [
        Together(tuple(sorted(some.values(), key=lambda one: one.table_uuid)))
        for group, some in groups.items()
        if group not in missing and (group in some or group in found.parts)
    ]


def _held(ready: Sequence[Item], found: Found, last: Mapping[str, int]) -> set[int]:
    """Places of what waits for a commit that may still turn up."""
    there = by_number(found.receipts)
    return {
        place
        for place, item in enumerate(ready)
        if isinstance(item, Together)
        and any(
            is_gap(one, there, last) and there[one.table_uuid, one.commit.commit_number] not in found.confirmed
            for one in item.receipts
        )
    }


def _successors(ready: Sequence[Item], found: Found) -> dict[int, list[int]]:
    """What has to wait for what, by place. What waits for something that is not ready waits for itself."""
    places = {
        (one.table_uuid, one.commit.commit_number): place
        for place, item in enumerate(ready)
        if isinstance(item, Together)
        for one in item.receipts
    }
    there = by_number(found.receipts)
    after: dict[int, list[int]] = {place: [place + 1] for place in range(len(found.names) - 1)}
    made = {uuid: place for place, commit in enumerate(found.names) for uuid in _made(commit)}
    before = {later: earlier for earlier, later in pairwise(sorted(there)) if earlier[0] == later[0]}
    for (uuid, number), place in places.items():
        earlier = before.get((uuid, number))
        if earlier is not None:
            # Found, and not ready: its transaction is not complete.
            after.setdefault(places.get(earlier, place), []).append(place)
        if uuid in made:
            after.setdefault(made[uuid], []).append(place)
    return after


def _made(commit: Commit) -> list[str]:
    """The identities that a commit of tier 1 made. What was revived had commits before."""
    made = [one for one in commit.operations if isinstance(one, Create)]
    made += [one.successor for one in commit.operations if isinstance(one, Drop) and one.successor is not None]
    return [one.entry.uuid for one in made if one.revives is None]


def _makings(ready: Sequence[Item], found: Found) -> dict[int, list[int]]:
    """The transactions that made tables, by place, and the commits of tier 1 that gave these their names."""
    made = {
        one.table_uuid: place
        for place, item in enumerate(ready)
        if isinstance(item, Together)
        for one in item.receipts
        if one.commit.commit_number == 0
    }
    after: dict[int, list[int]] = {}
    for place, commit in enumerate(found.names):
        for uuid in _confirmed(commit):
            if uuid in made:
                after.setdefault(made[uuid], []).append(place)
    return after


def _confirmed(commit: Commit) -> list[str]:
    """The identities whose names a commit of tier 1 took over from transactions."""
    return [one.reservation.entry.uuid for one in commit.operations if isinstance(one, Confirm)]
