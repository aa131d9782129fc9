"""One address for a fleet of servers, as a load balancer has: each connection goes to one that is alive.

Bytes are passed on as they are. When the server dies its connections end, in the middle of an answer if need be; the next ones
go to another.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from .server_fleet import Fleet


@asynccontextmanager
async def front_door(fleet: Fleet) -> AsyncIterator[str]:
    """The address, for the length of a block."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = urlsplit(await fleet.address())
        try:
            behind_reader, behind_writer = await asyncio.open_connection(place.hostname, place.port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, behind_writer), _pass_on(behind_reader, writer))

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
