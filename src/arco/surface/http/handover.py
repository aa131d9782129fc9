"""What workers of one server say to each other, over a socket that only this user can open.

A request goes from the worker that was asked to the one that owns what it changes (`crew.py`), whole: its client was let in, its
body is read. What must never enter: what a request means.
"""

import asyncio
import struct
from collections.abc import Callable

import msgspec

from arco.kernel.errors import CorruptObject

Headers = list[tuple[bytes, bytes]]
_LENGTH = struct.Struct(">I")


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    number: int
    method: str
    raw_path: bytes
    query_string: bytes
    headers: Headers
    body: bytes


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """It is begun. Whoever is asked and does not even say so is stuck."""

    number: int


class NotTaken(msgspec.Struct, frozen=True, array_like=True, tag="not_taken"):
    """It was not begun and never will be: do it yourself."""

    number: int


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """`trips` are the round trips to the store that it took there: who has the client counts them."""

    number: int
    status: int
    headers: Headers
    body: bytes
    trips: int = 0


class NoMore(msgspec.Struct, frozen=True, array_like=True, tag="no_more"):
    """From a worker that ends: what it was asked before is answered, and nothing else. And back: nothing else will come."""


class Wake(msgspec.Struct, frozen=True, array_like=True, tag="wake"):
    """There is something new to fold in this workspace."""

    warehouse: str


Frame = Ask | Taken | NotTaken | Answer | NoMore | Wake
_DECODER = msgspec.msgpack.Decoder(Frame)
_ENCODER = msgspec.msgpack.Encoder()


class Channel(asyncio.Protocol):
    """Frames over one connection between two workers."""

    def __init__(self, heard: Callable[["Channel", Frame], None], lost: Callable[["Channel"], None]) -> None:
        self._heard, self._lost = heard, lost
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: Frame) -> None:
        """Nothing, if nobody is there any more: then both sides know it by the end of the connection."""
        if self._transport is not None and not self._transport.is_closing():
            data = _ENCODER.encode(frame)
            self._transport.write(_LENGTH.pack(len(data)) + data)

    def close(self) -> None:
        """After what was written is sent."""
        if self._transport is not None:
            self._transport.close()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            end = _LENGTH.size + length
            if len(self._received) < end:
                return
            frame = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            self._heard(self, _decoded(frame))

    def connection_lost(self, _error: Exception | None) -> None:
        self._lost(self)


def _decoded(data: bytes) -> Frame:
    try:
        frame: Frame = _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise CorruptObject(f"a worker said what no worker says: {error}", hint="run workers of one version") from error
    return frame
