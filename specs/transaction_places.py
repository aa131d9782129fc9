"""The places of an actor in the transaction model, as far as they are about what it holds.

A place that is left by a conditional write (`NEEDS`) is left as soon as somebody else writes that object, because the write can
only fail then. What is done at a place is not said here.
"""

from specs.explorer import Shared, Step
from specs.transaction_world import COUNTS, FREE, At, World

# place -> what it writes ("pointer" of its table, its "own" record, the "other" record), and where its holder is without it.
NEEDS = {
    **dict.fromkeys(("ask", "owe", "ready"), ("pointer", "prepare")),
    **dict.fromkeys(("decide", "refuse", "leave again"), ("own", "look")),
    **{f"writer {place}": ("pointer", "writer") for place in ("ask", "owe", "ready")},
    **{f"reconciler {place}": ("pointer", "reconciler") for place in ("ask", "touch")},
    "early ask": ("pointer", "early"),
    "take": ("own", "look"),
    "leave": ("own", "end"),
    "kill": ("other", "prepare"),
    "seal": ("pointer", "finish"),
    "writer kill": ("other", "writer"),
    "reconciler kill": ("other", "reconciler"),
}


# Places before anything is prepared, where what was read of a pointer may still be of use.
CLAIMING = frozenset({"new", "doubt", "look", "take", "door", "prepare"})

# Places that are reached by reading alone, and left for where they were reached from.
STAYING = {"early ask", "decide", "refuse", "leave", "leave again", "owe", "ready", "writer owe", "writer ready"}
PASSING = frozenset(NEEDS) - STAYING
PASSING_WITHOUT_RECEIPTS = PASSING | {"ready", "writer ready"}


def dropped(world: World, at: At) -> At:
    """Where an actor is that held something until now: a conditional write that can only fail has failed."""
    if at.place in CLAIMING and at.table != FREE and not at.held >> at.table & 1:
        at = at._replace(table=FREE, extra=FREE)
    needed, back = NEEDS.get(at.place, ("", ""))
    if needed == "pointer":
        holds = at.held >> at.table
    elif needed == "other":
        holds = at.held >> world.records[at.extra]
    else:
        holds = at.held >> world.records.start if needed else 1
    if holds & 1 or (needed == "own" and holds) or (needed == "other" and not world.on("sent_back_by_cas")):
        return at
    if at.place == "leave" and not world.on("sent_back_before_503"):
        return at
    match back:
        case "prepare":
            return at._replace(
                held=at.held >> world.records.start << world.records.start, place=back, table=FREE, extra=FREE
            )
        case "look" if at.place == "decide" and not world.on("claimed_version"):
            return at._replace(place="settle")
        case "look":
            return looking(world, at)
        case "writer":
            return at._replace(held=0, place=back, extra=FREE)
        case "reconciler" | "finish" | "early":
            return at._replace(held=0, place=back, table=FREE, extra=FREE)
        case _:
            return ended(world)


def ended(world: World) -> At:
    return At(0, "end", entries=world.no_entries)


def looking(world: World, at: At) -> At:
    """About to look what its record says, with nothing in hand."""
    return At(0, "look", entries=world.no_entries, begun=at.begun, own=at.own, sent=at.sent)


def owed(world: World, shared: Shared, at: At, place: str) -> Step:
    """The receipts of everything that the pointer says are written, before it is written again."""
    value = (1 << len(world.based(shared, at.table, counts=at.extra == COUNTS))) - 1
    return Step(
        f"ensures the receipts of pointer {at.table + 1}", at._replace(place=place), ((world.receipts[at.table], value),)
    )
