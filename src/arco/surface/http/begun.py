"""Work that is begun where it stands, without a task, and goes on as somebody's who can wait only if it has to wait.

Most reads of a folder never wait: a task for each would be made, put in line and taken out of it for nothing. What must never
enter: whose work it is. Until it waits for the first time, work has no task of its own, so nothing that asks for the current one
(`asyncio.timeout`, a task group) may stand before that.
"""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Turn:
    """Waits once, for nothing but to be gone on with."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Rest(Generic[T]):
    """What is left of work that was begun and now waits. Whoever awaits it goes on with it."""

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        work, waits_for = self._work, self._waits_for
        while True:
            thrown: BaseException | None = None
            heard = None
            try:
                heard = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the work's own
                thrown = error
            try:
                waits_for = work.send(heard) if thrown is None else work.throw(thrown)
            except StopIteration as done:
                ended: T = done.value
                return ended
