"""Where an answer is written: its head waits for the body, and both go out together.

uvicorn writes a head as soon as it has one. On the wire that is a packet of its own: the system sends twice, and the client is
woken for a head that it can do nothing with. What must never enter: anything that waits; whoever ends an answer lets go of it.
"""

import asyncio

from arco.kernel.limits import ANSWER_JOINED_BYTES_MAX

_INTERIM = b"HTTP/1.1 1"
"""A client that asked whether it may send its body waits for this, and nothing follows it."""


class OneWrite:
    """The transport of one connection, as the answer under way sees it. Answers of a connection follow one another."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self._is_begun = False

    def begin(self) -> None:
        """The next answer."""
        self.let_go()
        self._is_begun = False

    def write(self, data: bytes) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            if len(data) <= ANSWER_JOINED_BYTES_MAX:
                self._transport.write(head + data)
                return
            self._transport.write(head)
        elif not self._is_begun and not data.startswith(_INTERIM):
            self._head, self._is_begun = data, True
            return
        self._transport.write(data)

    def let_go(self) -> None:
        """Nothing more belongs to this head: it goes out alone."""
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)

    def close(self) -> None:
        self.let_go()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
