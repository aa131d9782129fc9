"""The limits that one server keeps while it talks to clients. The defaults are those of `kernel/limits.py`."""

from dataclasses import dataclass

from arco.kernel import limits


@dataclass(frozen=True, slots=True)
class Bounds:
    requests_at_once: int = limits.REQUESTS_AT_ONCE_MAX
    connections: int = limits.CONNECTIONS_MAX
    bodies_bytes: int = limits.BODIES_BYTES_MAX
    body_bytes: int = limits.JSON_BODY_BYTES_MAX
    url_bytes: int = limits.URL_BYTES_MAX
    headers: int = limits.HEADERS_MAX
    headers_bytes: int = limits.HEADERS_BYTES_MAX
    pipelined: int = limits.PIPELINED_MAX
    request_s: float = limits.REQUEST_TIMEOUT_S
    head_s: float = limits.HEAD_READ_S
    body_s: float = limits.BODY_READ_S
    discard_s: float = limits.BODY_DISCARD_S
    answer_s: float = limits.ANSWER_READ_S
    ready_s: float = limits.READY_TIMEOUT_S
    stop_s: float = limits.GRACEFUL_STOP_S
