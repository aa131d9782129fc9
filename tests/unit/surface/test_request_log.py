"""The log: one line a request, in one form, and nothing that must not be in it."""

import asyncio
import io
import json
import logging

import pytest

from arco.kernel.secret import Secret
from arco.surface.http import request_log
from arco.surface.http.access import Access
from arco.surface.http.app import App, Setup
from arco.surface.http.exchange import Request, Response
from arco.surface.http.request_log import LogForm, LogLevel, configure
from arco.surface.http.routes import route
from stand_ins.asgi import ask, make_app

CANARY = "canary-91c2ef"
NAMESPACES = "/iceberg/v1/default.default/namespaces"


@pytest.fixture(autouse=True)
def loggers():
    """Loggers belong to the whole process: they are put back as they were."""
    names = ("arco", "uvicorn", "asyncio")
    before = [(logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in names]
    yield
    for logger, kept in before:
        logger.__dict__.update(kept)
        logger.manager._clear_cache()  # type: ignore[attr-defined]


def logged(form: LogForm, level: LogLevel, app: App, *requests: tuple[str, str], **headers: str) -> str:
    stream = io.StringIO()
    configure(form, level, stream)

    async def send() -> None:
        for method, path in requests:
            await ask(app, method, path, b'{"namespace": ["%s"]}' % CANARY.encode() if method == "POST" else b"", **headers)

    asyncio.run(send())
    return stream.getvalue()


def test_a_line_says_who_asked_for_what_and_what_came_of_it():
    text = logged(
        LogForm.JSON, LogLevel.INFO, make_app(), ("GET", f"{NAMESPACES}/none?x=1"), X_Request_Id="given-by-a-proxy"
    )
    line = json.loads(text)
    assert line.pop("time").endswith("Z")
    assert line.pop("ms") >= 0
    assert line == {
        "level": "info",
        "logger": "arco.http",
        "message": "request",
        "request_id": "given-by-a-proxy",
        "method": "GET",
        "path": f"{NAMESPACES}/none",
        "route": "/iceberg/v1/{prefix}/namespaces/{namespace}",
        "status": 404,
        "bytes": line["bytes"],
        "client": "127.0.0.1",
    }


@pytest.mark.parametrize("form", LogForm)
def test_a_line_holds_no_body_no_query_and_no_token(form):
    app = make_app(Setup(access=Access(Secret(CANARY))))
    requests = (
        ("POST", NAMESPACES),
        ("GET", f"{NAMESPACES}?pageToken={CANARY}"),
        ("GET", "/nowhere"),
        ("GET", f"/?{CANARY}"),
    )
    for token in (CANARY, f"{CANARY}-wrong"):
        text = logged(form, LogLevel.DEBUG, app, *requests, Authorization=f"Bearer {token}", Idempotency_Key=CANARY)
        assert text.count("\n") == len(requests)
        assert CANARY not in text


@pytest.mark.parametrize("form", LogForm)
def test_a_path_cannot_make_a_line_of_its_own(form):
    text = logged(form, LogLevel.INFO, make_app(), ("GET", "/a%0Ab\r\nforged\x1b[31m\u2028line"))
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_probes_are_only_for_who_debugs():
    probes = (("GET", "/health"), ("GET", "/ready"))
    assert logged(LogForm.TEXT, LogLevel.INFO, make_app(), *probes) == ""
    assert logged(LogForm.TEXT, LogLevel.DEBUG, make_app(), *probes).count("\n") == 2


async def broken(_request: Request) -> Response:
    raise RuntimeError("first line\nsecond line")


@pytest.mark.parametrize(
    ("level", "lines"), [(LogLevel.INFO, 3), (LogLevel.WARNING, 2), (LogLevel.ERROR, 1), (LogLevel.OFF, 0)]
)
def test_a_level_leaves_out_what_is_below_it(level, lines):
    app = make_app(None, [route("GET", "/broken", broken)])
    text = logged(LogForm.JSON, level, app, ("GET", "/nowhere"), ("GET", "/broken"))
    assert len(text.splitlines()) == lines


def test_a_failure_of_the_server_is_one_line_with_its_traceback():
    text = logged(LogForm.JSON, LogLevel.ERROR, make_app(None, [route("GET", "/broken", broken)]), ("GET", "/broken"))
    line = json.loads(text)
    assert line["error"].startswith("Traceback")
    assert line["error"].endswith("RuntimeError: first line\nsecond line")
    assert line["path"] == "/broken"


@pytest.mark.parametrize("form", LogForm)
def test_what_uvicorn_says_has_the_same_form(form):
    stream = io.StringIO()
    configure(form, LogLevel.INFO, stream)
    logging.getLogger("uvicorn.error").warning("Invalid %s", "request")
    logging.getLogger("uvicorn.error").debug("not this")
    logging.getLogger("asyncio").error("nobody waited")
    first, second = stream.getvalue().splitlines()
    assert "Invalid request" in first
    assert "nobody waited" in second
    assert first.startswith("{") is (form is LogForm.JSON)


def test_people_get_text_and_programs_get_json():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert request_log.default_form(Terminal()) is LogForm.TEXT
    assert request_log.default_form(io.StringIO()) is LogForm.JSON
