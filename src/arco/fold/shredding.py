"""From an event to the rows that it contributes: pure, the same in Spark, in the model and in fresh reads.

Whatever an event holds, it never stops a fold: it contributes, or it is refused whole, with the reason (`InvalidInput`). One of a
type that this version does not know is set aside (`UnknownFormat`): a newer Arco reads it from the same ledger.
"""

from collections.abc import Callable, Iterator, Mapping

from arco.fold import (
    shredding_assets,
    shredding_execution,
    shredding_iceberg,
    shredding_lineage,
    shredding_quality,
    shredding_search,
)
from arco.fold.contributions import Contribution, order
from arco.kernel.errors import InvalidInput, TooLarge, UnknownFormat
from arco.kernel.ids import clip
from arco.ledger.envelope import Event
from arco.storage.keys import Head

__all__ = ["Contribution", "order", "shred", "shred_for"]

_Shredders = Mapping[str, Callable[[Event], Iterator[Contribution]]]

SHREDDERS: Mapping[Head, _Shredders] = {
    Head.EXECUTION: shredding_execution.SHREDDERS,
    Head.QUALITY: shredding_quality.SHREDDERS,
    Head.LINEAGE: shredding_lineage.SHREDDERS,
    Head.ASSETS: shredding_assets.SHREDDERS,
    Head.ICEBERG: shredding_iceberg.SHREDDERS,
    Head.SEARCH: shredding_search.SHREDDERS,
}


def shred(event: Event) -> list[Contribution]:
    """The rows of an event, for all heads. InvalidInput or UnknownFormat: it has none in this version."""
    heads = [head for head, known in SHREDDERS.items() if event.type in known]
    if not heads:
        raise _unknown(event)
    return [one for head in heads for one in shred_for(head, event)]


def shred_for(head: Head, event: Event) -> list[Contribution]:
    """The rows of an event in the tables of one head."""
    shredder = SHREDDERS[head].get(event.type)
    if shredder is None:
        raise _unknown(event)
    try:
        return _distinct(list(shredder(event)))
    except TooLarge as error:
        raise InvalidInput(error.message) from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        # The open documents inside events are anybody's: what is not as it should be there is the event's fault, not ours.
        raise InvalidInput(clip(f"{type(error).__name__}: {error}", 300)) from error


def _distinct(contributed: list[Contribution]) -> list[Contribution]:
    """What an event says first of a key is what it says of it: two rows of one event would have one order."""
    if len(contributed) < 2:
        return contributed
    found: dict[tuple[object, ...], Contribution] = {}
    for one in contributed:
        table, row = one
        found.setdefault((table.name, *[row[name] for name in table.key_names]), one)
    return contributed if len(found) == len(contributed) else list(found.values())


def _unknown(event: Event) -> UnknownFormat:
    return UnknownFormat(f"this version knows no event {event.type}", hint="a newer Arco may know it")
