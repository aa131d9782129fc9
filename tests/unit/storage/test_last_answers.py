"""A command ends with its own exit code, however late the thread is that handed it its last answer."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from arco.storage import last_answers
from arco.storage.last_answers import UnderWay

COMMAND = """
import asyncio, sys, threading, time
from asyncio.selector_events import BaseSelectorEventLoop

from arco.kernel.errors import StoreRefused
from arco.storage.cloud import CloudStore

here, away = threading.get_ident(), threading.Lock()
wake, frames = BaseSelectorEventLoop._write_to_self, sys._current_frames

def wake_and_dawdle(loop):
    wake(loop)
    if threading.get_ident() != here:
        with away:
            pass

def look_and_let_go():
    found = frames()
    if away.locked():
        away.release()
    return found

class Interpreter:
    # Taken down with the last that Python has: whoever was not waited for comes back now.
    def __del__(self, away=away, sleep=time.sleep):
        if away.locked():
            away.release()
            sleep(60)

BaseSelectorEventLoop._write_to_self = wake_and_dawdle
sys._current_frames = look_and_let_go
sys.interpreter = Interpreter()
away.acquire()

async def ask():
    config = {"endpoint": sys.argv[1], "region": "us-east-1", "access_key_id": "nobody", "secret_access_key": "nothing"}
    await CloudStore("s3", "bucket", "", config, allow_http=True).get("key")

try:
    asyncio.run(ask())
except StoreRefused:
    print("refused")
    sys.exit(2)
"""


class _Refuses(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_command_whose_last_answer_is_still_being_handed_over_ends_with_its_own_exit_code(endpoint, tmp_path):
    command = [sys.executable, "-c", COMMAND, endpoint]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "refused\n", "")


def test_a_store_that_is_closed_lets_answers_come_that_are_about_to():
    async def closed() -> str:
        loop, under_way = asyncio.get_running_loop(), UnderWay()
        request: asyncio.Future[str] = loop.create_future()
        asked = under_way.begun(request)
        loop.call_soon(request.set_result, "answered")
        await under_way.end()
        return asked.result()

    assert asyncio.run(closed()) == "answered"


def test_a_store_that_is_closed_does_not_wait_for_one_that_never_answers(monkeypatch):
    monkeypatch.setattr(last_answers, "LAST_ANSWERS_S", 0)

    async def closed() -> bool:
        under_way = UnderWay()
        asked = under_way.begun(asyncio.get_running_loop().create_future())
        await under_way.end()
        return asked.cancelled()

    assert asyncio.run(closed())
