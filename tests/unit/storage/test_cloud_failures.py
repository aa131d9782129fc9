"""What a read that failed on a cloud store is taken for: the server's own words decide, never digits of a key or a duration."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from arco.kernel.errors import RetryLater, Throttled, Unavailable
from arco.storage.cloud import CloudStore

BODIES = {
    503: b"",
    429: b"",
    400: b"<Error><Code>SlowDown</Code></Error>",
    500: b"<Error><Code>InternalError</Code></Error>",
}


class _AnswersItsKey(BaseHTTPRequestHandler):
    """The status is the first folder of the key that is asked for."""

    def do_GET(self) -> None:
        status = int(self.path.split("/")[2])
        self.send_response(status)
        self.send_header("content-length", str(len(BODIES[status])))
        self.end_headers()
        self.wfile.write(BODIES[status])

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _AnswersItsKey)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def failure_of(endpoint: str, key: str) -> RetryLater:
    config = {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "nobody", "secret_access_key": "nothing"}
    store = CloudStore("s3", "bucket", "", config, allow_http=True)
    with pytest.raises(RetryLater) as caught:
        asyncio.run(store.get(key))
    return caught.value


@pytest.mark.parametrize("key", ["503/x", "429/x", "400/x"])
def test_a_server_that_asks_for_a_pause_is_told_from_one_that_is_broken(endpoint, key):
    assert isinstance(failure_of(endpoint, key), Throttled)


@pytest.mark.parametrize("key", ["500/503", "500/429.SlowDown"])
def test_digits_of_a_key_are_no_status(endpoint, key):
    assert isinstance(failure_of(endpoint, key), Unavailable)


def test_nobody_there_is_not_a_server_that_asks_for_a_pause():
    assert isinstance(failure_of("http://127.0.0.1:9", "503/429/SlowDown"), Unavailable)
