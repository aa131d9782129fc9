"""How code failed, from where it begins: what Arco and its threads did before that tells nobody anything."""

import asyncio
import concurrent.futures
from pathlib import Path
from traceback import StackSummary, TracebackException

_ARCO = Path(__file__).parents[2]
_BEFORE = (f"{_ARCO}/", *(f"{Path(str(one.__file__)).parent}/" for one in (concurrent.futures, asyncio)))


def traced(error: BaseException) -> list[str]:
    """The lines of a failure and of what it came of. One that no code but ours was part of is there with all of it."""
    found = TracebackException.from_exception(error)
    one: TracebackException | None = found
    while one is not None:
        one.stack = _from_code(one.stack)
        one = one.__cause__ or one.__context__
    return "".join(found.format()).splitlines()


def _from_code(stack: StackSummary) -> StackSummary:
    begins = next((place for place, frame in enumerate(stack) if not frame.filename.startswith(_BEFORE)), 0)
    return StackSummary.from_list(stack[begins:])
