"""The parts of the state by the words that people type."""

from arco.fold.folding import ALL_HEADS
from arco.kernel.errors import InvalidInput
from arco.storage.keys import Head


def domain_named(word: str) -> Head:
    try:
        found = Head(word)
    except ValueError:
        found = None
    if found not in ALL_HEADS:
        raise InvalidInput(f"there is no domain {word!r}", hint=f"one of {', '.join(head.value for head in ALL_HEADS)}")
    return found
