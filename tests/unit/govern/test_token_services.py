"""Requests to a token service: whoever waits for one keeps nobody waiting who needs none."""

import asyncio
import socket

from arco.govern.token_services import Ask, send
from arco.kernel.errors import Unavailable


def test_a_token_service_that_does_not_answer_holds_up_nobody_else() -> None:
    """Threads of the event loop read folded state and write checkpoints: those who ask for tokens have threads of their own."""

    async def scene() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        ask = Ask("POST", f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, b"x")
        asking = [asyncio.ensure_future(send(ask)) for _ in range(64)]
        try:
            done, _ = await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(int))}, timeout=5)
            assert done, "a thread of the event loop waits for the token service"
        finally:
            listener.close()
            for one in asking:
                one.cancel()
            await asyncio.wait(asking)

    asyncio.run(scene())


def test_a_token_service_that_is_not_there_is_said_by_its_address_alone() -> None:
    async def scene() -> str:
        try:
            await send(Ask("POST", "http://127.0.0.1:1/?secret", {"authorization": "canary"}, b"canary"))
        except Unavailable as error:
            return error.one_line()
        raise AssertionError("nobody is there")

    said = asyncio.run(scene())
    assert "127.0.0.1:1" in said
    assert "canary" not in said
    assert "secret" not in said
