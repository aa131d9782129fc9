"""The server's log: one line per request and one per trouble, on stderr, for machines (JSON) or for people (text).

A line says who asked for what and what came of it. Never in it: bodies, query strings, headers, links, and with them tokens and
keys. The one exception that shows more is a failure of the server itself, which is logged with its traceback.
"""

import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

import msgspec

from arco.kernel.ids import clip
from arco.surface.http.call import Call
from arco.surface.http.routes import Door
from arco.surface.http.state_files import FILES

log = logging.getLogger("arco.http")

# The other two are uvicorn, which speaks of connections, and asyncio, of which only trouble is of interest.
_LOGGERS = {"arco": logging.DEBUG, "uvicorn": logging.DEBUG, "asyncio": logging.WARNING}
_PATH_CHARS_MAX = 500
OFF = logging.CRITICAL + 10


class LogForm(StrEnum):
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    OFF = "off"

    @property
    def number(self) -> int:
        return OFF if self is LogLevel.OFF else logging.getLevelNamesMapping()[self.upper()]


def configure(form: LogForm, level: LogLevel, stream: TextIO | None = None) -> None:
    """Send everything that the server has to say to one stream, in one form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLine() if form is LogForm.JSON else _TextLine())
    for name, at_least in _LOGGERS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(max(level.number, at_least))
        logger.propagate = False


def default_form(stream: TextIO | None = None) -> LogForm:
    """Text for a terminal, JSON for everything that reads logs."""
    return LogForm.TEXT if (stream or sys.stderr).isatty() else LogForm.JSON


def log_request(call: Call, now_s: float) -> None:
    """One line for an answered request. Probes come every few seconds and say the same: only whoever debugs sees them."""
    status = call.status or 0
    quiet = call.is_handed_over or (call.route is not None and call.route.door is Door.PROBE and status < 500)
    level = logging.DEBUG if quiet else logging.WARNING if status >= 500 else logging.INFO
    if log.isEnabledFor(level):
        # Made by hand: to find out which line of the program logs would take longer than everything else here.
        record = logging.LogRecord(log.name, level, "", 0, "request", None, None)
        record.__dict__.update(facts(call, now_s, status=status, bytes=call.sent_bytes))
        log.handle(record)


def facts(call: Call, now_s: float, **more: object) -> dict[str, Any]:
    """What a line says of a request."""
    said = {"request_id": call.request_id, "method": call.method, "path": _path(call.path)}
    if call.route is not None:
        said["route"] = call.route.template
    return {"facts": {**said, **more, "ms": round((now_s - call.started_s) * 1000, 2), "client": call.client}}


def _path(path: str) -> str:
    """A link is a key: what follows in its path is not for logs, also where the path is not quite right."""
    begin, found, _ = path.partition(f"{FILES}/")
    return clip(f"{begin}{found}…" if found else path, _PATH_CHARS_MAX)


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


class _TextLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = getattr(record, "facts", {})
        message = _one_line(record.getMessage())
        if "status" in said:
            rest = f"{said['status']} {said['ms']} ms {said['bytes']} B {said['client']} {said['request_id']}"
            message = f"{said['method']} {_one_line(said['path'])} {rest}"
        elif said:
            message = f"{message}: {said['method']} {_one_line(said['path'])} {said['ms']} ms {said['request_id']}"
        line = f"{_time(record)} {record.levelname:<7} {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
