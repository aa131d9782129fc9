"""Wake-ups between the processes of one machine: datagrams to sockets in a private folder of the root.

Every listener has a socket of its own in the folder; whoever has news sends the run's id to all of them and waits for nobody. A
socket that refuses belongs to a process that is gone, and is removed. A system without such sockets, or a folder on a disk that
has none, is no failure: then everybody looks now and then, as on a bucket.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from arco.kernel.entropy import Entropy

_FOLDER = ".arco/wake"
_ENDING = ".sock"
_PATH_BYTES_MAX = 100
"""What fits into an address of every system; below a longer folder its descriptor stands for it."""
_MESSAGE_BYTES_MAX = 64


class LocalWakeUps:
    """One process at one root. Make it, then `listen` if there is something to hear."""

    def __init__(self, root: Path, entropy: Entropy, *, looks_every_s: float) -> None:
        self.looks_every_s = looks_every_s
        self._folder = root / _FOLDER
        self._name = f"{os.getpid()}-{entropy.token_bytes(6).hex()}{_ENDING}"
        self._folder_fd: int | None = None
        self._sender: socket.socket | None = None
        self._listener: socket.socket | None = None
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            self._sender = _datagrams()

    @property
    def is_listening(self) -> bool:
        return self._listener is not None

    def tell(self, run: str) -> None:
        if self._sender is None:
            return
        try:
            names = [one.name for one in self._folder.iterdir()]
        except OSError:
            return
        for name in names:
            if name != self._name and name.endswith(_ENDING):
                self._send(self._sender, name, run.encode()[:_MESSAGE_BYTES_MAX])

    def _send(self, sender: socket.socket, name: str, message: bytes) -> None:
        try:
            sender.sendto(message, self._address(name))
        except OSError as error:
            # A full socket belongs to somebody who has enough to look at.
            if error.errno == errno.ECONNREFUSED:
                with suppress(OSError):
                    (self._folder / name).unlink()

    def listen(self, heard: Callable[[str], None]) -> None:
        if self._sender is None or self._listener is not None:
            return
        with suppress(OSError):
            listener = _datagrams()
            listener.bind(self._address(self._name))
            self._listener = listener
            asyncio.get_running_loop().add_reader(listener.fileno(), self._read, listener, heard)

    def _read(self, listener: socket.socket, heard: Callable[[str], None]) -> None:
        """Everything that has arrived; the same news twice is news once."""
        runs: dict[str, None] = {}
        with suppress(OSError):
            while True:
                runs[listener.recv(_MESSAGE_BYTES_MAX).decode("ascii", "replace")] = None
        for run in runs:
            heard(run)

    def close(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            with suppress(OSError):
                (self._folder / self._name).unlink()
        if self._sender is not None:
            self._sender.close()
            self._sender = None
        if self._folder_fd is not None:
            os.close(self._folder_fd)
            self._folder_fd = None

    def _address(self, name: str) -> str:
        whole = str(self._folder / name)
        if len(os.fsencode(whole)) <= _PATH_BYTES_MAX or self._folder_fd is None:
            return whole
        return f"/proc/self/fd/{self._folder_fd}/{name}"


def _datagrams() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made
