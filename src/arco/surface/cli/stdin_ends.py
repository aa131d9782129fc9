"""`--until-stdin-ends`: the process that was started stops when nobody holds the other end of its standard input any more.

Whoever held it may have ended in any way: the system closes what the dead had open. Of several processes the parent listens to
it (`workers.py`): those that serve have none of their own. What must never enter: how a server stops. It is told as anybody
would tell it.
"""

import asyncio
import os
import signal
import stat
import sys

from arco.kernel.errors import InvalidInput

_READ_BYTES = 4096


def stdin_held() -> int:
    """The descriptor of a standard input that somebody can hold open, and so let go."""
    try:
        found = sys.stdin.fileno()
        mode = os.fstat(found).st_mode
    except (AttributeError, OSError, ValueError):
        raise _held_by_nobody("is closed") from None
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(found)):
        raise _held_by_nobody("is a file or /dev/null")
    return found


def _held_by_nobody(why: str) -> InvalidInput:
    return InvalidInput(
        f"--until-stdin-ends, and standard input {why}, which has ended already",
        hint="give the server a pipe, and hold the other end of it",
    )


def has_ended(stdin: int) -> bool:
    """Whether that is why there is something to read. A terminal whose session is gone cannot be read, and has ended too."""
    try:
        return not os.read(stdin, _READ_BYTES)
    except OSError:
        return True


class StdinEnds:
    """Beside a server of one process: stops it when standard input ends."""

    def __init__(self, stdin: int) -> None:
        self._stdin = stdin

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._stdin, self._readable)

    async def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._stdin)

    def _readable(self) -> None:
        if has_ended(self._stdin):
            asyncio.get_running_loop().remove_reader(self._stdin)
            signal.raise_signal(signal.SIGTERM)
