"""One request to a token service, over HTTPS: never redirected, bounded in time and size, its secrets in no message.

What must never enter: what is asked for, and retries. Who asks again is the client that was told to.
"""

import asyncio
import http.client
import ssl
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from arco.kernel.errors import InvalidInput, StoreRefused, Throttled, Unavailable
from arco.kernel.limits import TOKEN_SERVICE_AT_ONCE_MAX, TOKEN_SERVICE_BYTES_MAX, TOKEN_SERVICE_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Ask:
    """A request. What it carries may be secret, and does not print itself."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """An answer; its body may be secret, too."""

    status: int
    body: bytes = field(repr=False)


Send = Callable[[Ask], Awaitable[Told]]


# Threads of their own: a service that does not answer must not hold up who waits for a thread of the event loop.
_THREADS = ThreadPoolExecutor(TOKEN_SERVICE_AT_ONCE_MAX, thread_name_prefix="arco-tokens")


async def send(ask: Ask) -> Told:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _send, ask)


def _send(ask: Ask) -> Told:
    parts = urlsplit(ask.url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=TOKEN_SERVICE_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TOKEN_SERVICE_TIMEOUT_S)
    try:
        connection.request(ask.method, parts.path or "/", body=ask.body or None, headers=dict(ask.headers))
        answer = connection.getresponse()
        return Told(answer.status, answer.read(TOKEN_SERVICE_BYTES_MAX))
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"the token service {parts.netloc} did not answer: {type(error).__name__}") from None
    finally:
        connection.close()


def check_told(told: Told, service: str, reason: str) -> None:
    """Raise what a refusal means. `reason` is the service's own word for it, never the whole answer."""
    if told.status == 200:
        return
    said = f"{service} answered {told.status}{f' {reason}' if reason else ''}"
    if told.status in {429, 503} or "Throttl" in reason or reason == "SlowDown":
        raise Throttled(said)
    if told.status >= 500:
        raise Unavailable(said)
    raise StoreRefused(said, hint="docs/credentials.md says what the server's own credentials must be allowed to do")


def check_endpoint(url: str, *, allow_http: bool) -> str:
    """An address of a token service that secrets may be sent to."""
    parts = urlsplit(url)
    plain = parts.scheme == "http" and allow_http
    if (
        (parts.scheme != "https" and not plain)
        or not parts.hostname
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise InvalidInput("the address of the token service is not https://host", hint="allow_http=true accepts http://")
    return url.rstrip("/") if parts.path in {"", "/"} else url
