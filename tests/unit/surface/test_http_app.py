"""The application: one answer a request, in time, within limits, and nothing of the inside."""

import asyncio
import gzip
import json
import logging
import zlib
from collections.abc import Awaitable, Callable

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import (
    ERROR_TABLE,
    ArcoError,
    BrokenInvariant,
    CorruptObject,
    OutcomeUnknown,
    RetryLater,
    StoreRefused,
    StoreUnsuitable,
    Throttled,
    Unavailable,
    UnknownFormat,
)
from arco.kernel.secret import Secret
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import Always
from arco.surface.http.access import Access
from arco.surface.http.app import App, Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.exchange import Request, Response, json_response, no_content
from arco.surface.http.failures import failure
from arco.surface.http.routes import Door, route
from stand_ins.asgi import Exchange, ask, make_app
from stand_ins.troubled_store import Mood, TroubledStore

CANARY = "canary-4b1d77"
NAMESPACES = "/iceberg/v1/default.default/namespaces"


def with_handler(handler: Callable[[Request], Awaitable[Response]], *bounds: Bounds, method: str = "POST") -> App:
    setup = Setup(bounds=bounds[0]) if bounds else None
    return make_app(setup, [route(method, "/try", handler)])


async def echo(request: Request) -> Response:
    return Response(200, request.body)


def run(coroutine):
    return asyncio.run(coroutine)


# Answers


def test_every_answer_names_its_request():
    first, second = run(ask(make_app(), "GET", "/health")), run(ask(make_app(), "GET", "/nowhere"))
    assert len(first.headers["x-request-id"]) == len(second.headers["x-request-id"]) == 26


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a-proxy-gave-it.1", True),
        ("x" * 64, True),
        ("short", False),
        ("x" * 65, False),
        ("new\nline-1234", False),
        ("ü" * 9, False),
    ],
)
def test_an_id_that_was_passed_on_is_kept_if_it_is_one(given, kept):
    answer = run(ask(make_app(), "GET", "/health", X_Request_Id=given))
    assert (answer.headers["x-request-id"] == given) is kept


def test_what_can_be_got_can_be_asked_about():
    got, asked = run(ask(make_app(), "GET", "/health")), run(ask(make_app(), "HEAD", "/health"))
    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers["content-length"] == got.headers["content-length"] == str(len(got.body))


@pytest.mark.parametrize(("path", "allowed"), [("/health", "GET, HEAD"), (NAMESPACES, "GET, HEAD, POST")])
def test_a_wrong_method_hears_the_right_ones(path, allowed):
    answer = run(ask(make_app(), "PATCH", path))
    assert answer.error == (405, "UnsupportedOperationException")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/nowhere", "//health", "/health/", "/iceberg//v1/config", "/HEALTH"])
def test_a_path_is_taken_as_it_is_written(path):
    assert run(ask(make_app(), "GET", path)).error == (404, "NotFoundException")


def test_a_name_that_is_missing_does_not_turn_into_another_route():
    assert run(ask(make_app(), "GET", f"{NAMESPACES}/")).error == (400, "BadRequestException")
    assert run(ask(make_app(), "DELETE", f"{NAMESPACES}/ns/tables/")).status in {400, 404}


def test_a_large_answer_is_packed_for_who_can_unpack_it():
    async def large(_request):
        return json_response(["word"] * 20_000)

    app = with_handler(large, method="GET")
    plain, packed = run(ask(app, "GET", "/try")), run(ask(app, "GET", "/try", Accept_Encoding="gzip, x-gzip, deflate"))
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert len(packed.body) * 10 < len(plain.body)
    assert packed.json == plain.json == ["word"] * 20_000
    for answer in (plain, packed):
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-length"] == str(len(answer.body))
    assert "content-encoding" not in run(ask(app, "GET", "/try", Accept_Encoding="gzip;q=0, identity")).headers
    assert "content-encoding" not in run(ask(make_app(), "GET", "/health", Accept_Encoding="gzip")).headers


# Nothing of the inside


def test_an_error_that_is_none_of_ours_says_nothing_and_the_log_has_it(caplog):
    async def broken(_request):
        raise RuntimeError(CANARY)

    answer = run(ask(with_handler(broken), "POST", "/try"))
    assert answer.error == (500, "InternalServerError")
    assert CANARY not in answer.body.decode() + str(answer.headers)
    assert answer.headers["x-request-id"] in answer.json["error"]["message"]
    record = next(one for one in caplog.records if one.exc_info)
    assert CANARY in str(record.exc_info[1])
    assert record.facts["request_id"] == answer.headers["x-request-id"]


INSIDE = [
    Throttled,
    Unavailable,
    OutcomeUnknown,
    RetryLater,
    CorruptObject,
    UnknownFormat,
    StoreUnsuitable,
    BrokenInvariant,
    StoreRefused,
]


@pytest.mark.parametrize("kind", INSIDE, ids=lambda kind: kind.__name__)
def test_what_is_wrong_with_the_server_is_said_without_its_details(kind, caplog):
    async def failing(_request):
        raise kind(f"s3://{CANARY}/_catalog/x.json", hint=CANARY)

    answer = run(ask(with_handler(failing), "POST", "/try"))
    assert answer.status >= 500
    assert CANARY not in answer.body.decode() + str(answer.headers)
    assert CANARY in caplog.text
    assert answer.error[1] == {
        "retry_later": "ServiceUnavailableException",
        "throttled": "SlowDownException",
        "unavailable": "ServiceUnavailableException",
        "outcome_unknown": "CommitStateUnknownException",
    }.get(kind.code, "InternalServerError")


def test_what_the_disk_refuses_is_not_the_clients_mistake(caplog):
    async def failing(_request):
        raise StoreRefused(f"no permission to write /srv/{CANARY}")

    answer = run(ask(with_handler(failing), "POST", "/try"))
    assert answer.error == (500, "InternalServerError")
    assert "does not let the server do this" in answer.body.decode()
    assert CANARY not in answer.body.decode()
    assert CANARY in caplog.text


def errors(cls: type[ArcoError] = ArcoError) -> list[type[ArcoError]]:
    """The product's own; the simulator has one more, which no server knows."""
    ours = (sub for sub in cls.__subclasses__() if sub.__module__.startswith("arco."))
    return [cls, *(below for sub in ours for below in errors(sub))]


@pytest.mark.parametrize("kind", errors(), ids=lambda kind: kind.code)
def test_every_error_has_an_envelope(kind):
    response = failure(kind("message"), "id")
    said = json.loads(response.body)["error"]
    assert said["code"] == response.status
    assert response.status == ERROR_TABLE[kind.code].status
    assert said["type"].endswith(("Exception", "Error"))
    assert (said["message"] == "message") is (response.status < 500)
    assert ("Retry-After" in response.headers) is (response.status == 503)


@pytest.mark.parametrize("kind", errors(), ids=lambda kind: kind.code)
def test_a_way_out_that_an_error_has_of_its_own_is_said_in_the_envelope(kind):
    response = failure(kind("message", hint="the way out"), "id")
    said = json.loads(response.body)["error"]["message"]
    assert (said == "message: the way out") is (response.status < 500)
    assert ("the way out" in said) is (response.status < 500)


def test_who_must_wait_for_others_is_asked_to_come_again_and_no_operator_is_called():
    async def waiting(_request):
        raise RetryLater(f"transaction {CANARY} is being committed on this table")

    answer = run(ask(with_handler(waiting), "POST", "/try"))
    assert answer.error == (503, "ServiceUnavailableException")
    assert answer.headers["retry-after"] == "1"
    said = answer.json["error"]["message"]
    assert "nothing was done" in said
    assert "operator" not in said
    assert CANARY not in said


# Time


def test_a_mutation_that_takes_too_long_is_answered_as_unknown_and_goes_on(caplog):
    async def scenario():
        go_on, ended = asyncio.Event(), []

        async def slow(_request):
            await go_on.wait()
            ended.append(True)
            return no_content()

        exchange = Exchange("POST", "/try")
        task = asyncio.create_task(exchange.run(with_handler(slow, Bounds(request_s=0))))
        await exchange.answered.wait()
        assert exchange.answer.error == (504, "CommitStateUnknownException")
        assert not ended
        go_on.set()
        await task
        assert ended

    with caplog.at_level(logging.INFO, "arco.http"):
        run(scenario())
    late = next(record for record in caplog.records if "after its client was answered" in record.message)
    assert late.facts["ended_with"] == 204


def test_a_read_that_takes_too_long_is_asked_to_come_again():
    async def scenario():
        go_on = asyncio.Event()

        async def slow(_request):
            await go_on.wait()
            return no_content()

        exchange = Exchange("GET", "/try")
        task = asyncio.create_task(exchange.run(with_handler(slow, Bounds(request_s=0), method="GET")))
        await exchange.answered.wait()
        assert exchange.answer.error == (503, "ServiceUnavailableException")
        assert exchange.answer.headers["retry-after"] == "1"
        go_on.set()
        await task

    run(scenario())


def test_a_failure_after_the_answer_is_in_the_log(caplog):
    async def scenario():
        exchange = Exchange("POST", "/try")

        async def slow(_request):
            await exchange.answered.wait()
            raise RuntimeError(CANARY)

        await exchange.run(with_handler(slow, Bounds(request_s=0)))
        assert exchange.answer.status == 504

    run(scenario())
    assert CANARY in caplog.text


def test_a_request_cut_off_by_the_end_of_the_server_is_answered_as_unknown():
    async def scenario():
        begun = asyncio.Event()

        async def endless(_request):
            begun.set()
            await asyncio.Event().wait()

        exchange = Exchange("POST", "/try")
        task = asyncio.create_task(exchange.run(with_handler(endless)))
        await begun.wait()
        task.cancel()
        await task
        assert exchange.answer.error == (504, "CommitStateUnknownException")

    run(scenario())


def test_a_request_that_is_answered_in_time_is_answered_once(caplog):
    async def scenario():
        async def quick(_request):
            return no_content()

        assert (await ask(with_handler(quick, Bounds(request_s=0)), "POST", "/try")).status == 204
        for _ in range(5):  # a timer that was left running would fire now
            await asyncio.sleep(0)

    with caplog.at_level(logging.INFO, "arco.http"):
        run(scenario())
    assert [record.message for record in caplog.records if record.name == "arco.http"] == ["request"]


# The end


def test_at_the_end_what_answers_left_to_do_is_finished_before_the_store_is_closed():
    async def scenario():
        done: list[str] = []

        class Store(MemoryStore):
            async def close(self):
                done.append("closed")

        app = make_app(store=Store(SystemClock()))

        async def settle():
            await asyncio.sleep(0)
            done.append("settled")

        app._state.settle = settle
        messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

        async def receive():
            return messages.pop(0)

        async def send(message):
            done.append(message["type"])

        await app({"type": "lifespan"}, receive, send)
        assert done == ["lifespan.startup.complete", "settled", "closed", "lifespan.shutdown.complete"]

    run(scenario())


def test_the_end_does_not_wait_for_ever(caplog):
    async def scenario():
        app = make_app(Setup(bounds=Bounds(stop_s=0)))
        app._state.settle = asyncio.Event().wait
        await app._end()

    run(scenario())
    assert "is not finished" in caplog.text


# Room


def test_more_requests_than_there_is_room_for_are_refused_before_anything_is_done():
    async def scenario():
        go_on, begun = asyncio.Event(), []
        both = asyncio.Barrier(3)

        async def slow(_request):
            begun.append(True)
            await both.wait()
            await go_on.wait()
            return no_content()

        app = with_handler(slow, Bounds(requests_at_once=2))
        running = [asyncio.create_task(ask(app, "POST", "/try")) for _ in range(2)]
        await both.wait()
        refused = await ask(app, "POST", "/try")
        assert refused.error == (503, "ServiceUnavailableException")
        assert refused.headers["retry-after"] == "1"
        # It may be a retry of one that landed: told that nothing was done, its client would clean up (C8).
        keyed = await ask(app, "POST", "/try", Idempotency_Key="0192e1d0-0000-7000-8000-000000000000")
        assert keyed.error == (504, "CommitStateUnknownException")
        assert keyed.headers["retry-after"] == "1"
        assert (await ask(app, "GET", "/health")).status == 200
        assert len(begun) == 2
        go_on.set()
        assert [answer.status for answer in await asyncio.gather(*running)] == [204, 204]

    run(scenario())


def test_a_request_whose_body_comes_late_finds_the_room_taken():
    async def scenario():
        go_on, begun = asyncio.Event(), asyncio.Event()

        async def slow(_request):
            begun.set()
            await go_on.wait()
            return no_content()

        app = with_handler(slow, Bounds(requests_at_once=1))
        late = Exchange("POST", "/try", [b"a", b"b"])
        last = late.messages.pop()
        asked = asyncio.Event()

        async def receive():
            if not late.messages:
                asked.set()
                await begun.wait()
                return last
            return late.messages.pop(0)

        late.receive = receive
        waiting = asyncio.create_task(late.run(app))
        await asked.wait()
        first = asyncio.create_task(ask(app, "POST", "/try"))
        assert (await waiting).error == (503, "ServiceUnavailableException")
        go_on.set()
        assert (await first).status == 204

    run(scenario())


def test_clients_that_send_slowly_take_no_room_from_others():
    async def scenario():
        app = with_handler(echo, Bounds(requests_at_once=1))
        slow = [asyncio.create_task(Exchange("POST", "/try", b"x", ends=False).run(app)) for _ in range(20)]
        await asyncio.sleep(0)
        assert (await ask(app, "POST", "/try", b"y")).body == b"y"
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow)

    run(scenario())


# Bodies


def test_a_body_comes_in_parts_and_arrives_whole():
    assert run(ask(with_handler(echo), "POST", "/try", [b"ab", b"", b"c"], Transfer_Encoding="chunked")).body == b"abc"


def test_a_body_is_bounded_before_it_is_read_and_while_it_is():
    app = with_handler(echo, Bounds(body_bytes=10, discard_s=0))
    assert run(ask(app, "POST", "/try", b"x" * 10)).status == 200
    announced = Exchange("POST", "/try", b"", {"content-length": "11"}, ends=False)
    assert run(announced.run(app)).error == (413, "BadRequestException")
    assert announced.answer.headers["connection"] == "close"
    chunked = Exchange("POST", "/try", [b"x" * 6, b"x" * 6], {"transfer-encoding": "chunked"})
    assert run(chunked.run(app)).error == (413, "BadRequestException")


def test_a_packed_body_is_unpacked_within_the_same_limit():
    app = with_handler(echo, Bounds(body_bytes=1000))
    packed = gzip.compress(b"x" * 1000)
    assert run(ask(app, "POST", "/try", packed, Content_Encoding="gzip")).body == b"x" * 1000
    bomb = gzip.compress(b"\0" * 10_000_000)
    small = with_handler(echo, Bounds(body_bytes=len(bomb)))
    assert run(ask(small, "POST", "/try", bomb, Content_Encoding="gzip")).error == (413, "BadRequestException")


@pytest.mark.parametrize(
    "body",
    [
        b"plain",
        gzip.compress(b"cut")[:-4],
        gzip.compress(b"a") + b"more",
        zlib.compress(b"not gzip"),
        gzip.compress(b"")[:5],
    ],
)
def test_a_body_that_is_not_packed_as_it_says_is_refused(body):
    answer = run(ask(with_handler(echo), "POST", "/try", body, Content_Encoding="gzip"))
    assert answer.error == (400, "BadRequestException")


def test_all_bodies_together_are_bounded_and_the_room_is_given_back():
    async def scenario():
        go_on, begun = asyncio.Event(), asyncio.Event()

        async def slow(request):
            begun.set()
            await go_on.wait()
            return Response(200, request.body)

        app = with_handler(slow, Bounds(bodies_bytes=100))
        running = asyncio.create_task(ask(app, "POST", "/try", b"x" * 60))
        await begun.wait()
        assert (await ask(app, "POST", "/try", b"x" * 60)).error == (503, "ServiceUnavailableException")
        go_on.set()
        assert (await running).status == 200
        assert (await ask(app, "POST", "/try", b"x" * 100)).status == 200

    run(scenario())


def test_a_body_that_does_not_arrive_is_not_waited_for():
    exchange = Exchange("POST", "/try", b"half", {"content-length": "8"}, ends=False)
    answer = run(exchange.run(with_handler(echo, Bounds(body_s=0, discard_s=0))))
    assert answer.status == 408
    assert answer.headers["connection"] == "close"


def test_a_client_that_goes_away_in_the_middle_of_its_request_has_asked_nothing():
    called = []

    async def handler(_request):
        called.append(True)

    exchange = Exchange("DELETE", "/try", b"half", {"content-length": "8"}, ends=False).disconnect()
    run(exchange.run(with_handler(handler, method="DELETE")))
    assert not called
    assert exchange.answer.status == 0


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/problem+json", 200),
        ("application/x-www-form-urlencoded", 200),  # what curl -d and urllib say by themselves
        ("text/plain", 415),
        ("text/xml", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json; charset=latin-1", 415),
        ("json", 415),
        ("", 415),
    ],
)
def test_a_body_is_json_and_says_so(content_type, status):
    assert (
        run(ask(with_handler(echo, Bounds(discard_s=0)), "POST", "/try", b"{}", Content_Type=content_type)).status == status
    )


def test_an_encoding_that_is_not_known_is_refused_with_the_one_that_is():
    answer = run(ask(with_handler(echo, Bounds(discard_s=0)), "POST", "/try", b"{}", Content_Encoding="br"))
    assert answer.error == (415, "BadRequestException")
    assert answer.headers["accept-encoding"] == "gzip"


# Heads


@pytest.mark.parametrize("name", ["Authorization", "Idempotency-Key", "Host", "Content-Type"])
def test_a_header_that_must_be_one_is_not_two(name):
    exchange = Exchange("GET", "/try", headers=[(name, "a"), (name, "b")])
    assert run(exchange.run(with_handler(echo, method="GET"))).error == (400, "BadRequestException")


def test_a_header_that_may_be_given_twice_is_joined():
    async def heard(request):
        return Response(200, request.headers["if-none-match"].encode())

    exchange = Exchange("GET", "/try", headers=[("If-None-Match", '"a"'), ("If-None-Match", '"b"')])
    assert run(exchange.run(with_handler(heard, method="GET"))).body == b'"a", "b"'


@pytest.mark.parametrize("path", ["/%", "/%zz", "/%2", "/a%80", "/%ff%fe", f"{NAMESPACES}/%C3%28"])
def test_a_path_that_does_not_decode_is_malformed(path):
    assert run(ask(make_app(), "GET", path)).error == (400, "BadRequestException")


@pytest.mark.parametrize("query", ["parent=%", "parent=%zz", "parent=%ff", "&".join(f"a{n}=1" for n in range(51))])
def test_a_query_that_does_not_decode_is_malformed(query):
    assert run(ask(make_app(), "GET", f"{NAMESPACES}?{query}")).error == (400, "BadRequestException")


# Access


def doors(token: str | None = "s3cret-token") -> App:
    async def fine(_request):
        return no_content()

    routes = [route("GET", f"/{door}", fine, door) for door in Door]
    return make_app(Setup(access=Access(Secret(token) if token else None)), routes)


def test_a_token_is_wanted_where_it_is_wanted():
    app = doors()
    for path in ("/token", "/nowhere", NAMESPACES, "/iceberg/v1/config"):
        answer = run(ask(app, "GET", path))
        assert answer.error == (401, "NotAuthorizedException")
        assert answer.headers["www-authenticate"] == 'Bearer realm="arco"'
    for path in ("/open", "/probe", "/health", "/ready", "/"):
        assert run(ask(app, "GET", path)).status in {200, 204}
    assert run(ask(app, "GET", "/token", Authorization="Bearer s3cret-token")).status == 204
    assert run(ask(app, "GET", "/token", Authorization="bearer  s3cret-token")).status == 204


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer s3cret", "Bearer s3cret-tokens", "Basic s3cret-token", "s3cret-token", "Bearer ü"],
)
def test_what_is_not_the_token_is_refused(given):
    answer = run(ask(doors(), "GET", "/token", Authorization=given))
    assert answer.error == (401, "NotAuthorizedException")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert "s3cret" not in answer.body.decode()


def test_a_body_is_not_read_from_who_has_no_token():
    exchange = Exchange("POST", NAMESPACES, b"", {"content-length": "9000000"}, ends=False)
    answer = run(exchange.run(make_app(Setup(access=Access(Secret("t")), bounds=Bounds(discard_s=0)))))
    assert answer.status == 401


def test_without_a_token_only_this_machine_is_answered_and_no_foreign_page():
    app = doors(None)
    for host in ("localhost", "127.0.0.1:8181", "[::1]:8181", "127.8.8.8", "a.localhost:1"):
        assert run(ask(app, "GET", "/token", Host=host)).status == 204
    for host in (
        "evil.example",
        "10.0.0.1:8181",
        "localhost.evil.example",
        "",
        "a b",
        "127.0.0.1.evil.example",
        "@localhost",
    ):
        assert run(ask(app, "GET", "/token", Host=host)).error == (403, "ForbiddenException")
        assert run(ask(app, "GET", "/open", Host=host)).status == 403
        assert run(ask(app, "GET", "/probe", Host=host)).status == 204
    own = {"Host": "localhost:8181", "Origin": "http://localhost:8181"}
    assert run(ask(app, "GET", "/token", **own)).status == 204
    for origin in ("http://evil.example", "null", "http://localhost:8182", "http://localhost"):
        assert run(ask(app, "GET", "/token", **(own | {"Origin": origin}))).status == 403


def test_who_says_insecure_is_answered_by_any_name():
    app = make_app(Setup(access=Access(None, this_machine_only=False)))
    assert run(ask(app, "GET", "/iceberg/v1/config", Host="lake.example")).status == 200


# Probes


class BrokenStore(MemoryStore):
    def __init__(self, error: Exception | None) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.error = error
        self.asked = 0

    async def head(self, key):
        self.asked += 1
        if self.error is None:
            await asyncio.Event().wait()
        raise self.error


def test_ready_says_which_kind_of_trouble_the_store_has():
    answer = run(ask(make_app(store=BrokenStore(Unavailable(CANARY))), "GET", "/ready"))
    assert answer.error == (503, "ServiceUnavailableException")
    assert answer.json["error"]["message"] == "the store does not answer: unavailable"
    assert answer.headers["retry-after"] == "1"


def test_ready_does_not_wait_for_a_silent_store_nor_ask_it_twice():
    async def scenario():
        store = BrokenStore(None)
        app = make_app(Setup(bounds=Bounds(ready_s=0.01)), store=store)
        for _ in range(3):
            answer = await ask(app, "GET", "/ready")
            assert answer.json["error"]["message"] == "the store does not answer: timeout"
        assert store.asked == 1
        assert (await ask(app, "GET", "/health")).status == 200

    run(scenario())


# Ready


class NamesAreSlow(MemoryStore):
    """A store that gives out no manifest until the test says so."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.gate = asyncio.Event()
        self.read: list[str] = []

    async def get(self, key):
        if key.endswith("catalog.manifest.json"):
            self.read.append(key)
            await self.gate.wait()
        return await super().get(key)


async def filled(store, *warehouses):
    for warehouse in warehouses:
        await store.put(f"{warehouse}/_catalog/manifests/catalog.manifest.json", b"{}", Always())


def test_a_server_is_not_ready_before_it_has_read_the_names():
    async def story():
        store = NamesAreSlow()
        store.gate.set()
        assert (await ask(make_app(store=store), "POST", NAMESPACES, b'{"namespace":["a"]}')).status == 200
        store.gate.clear()
        store.read.clear()
        app = make_app(Setup(bounds=Bounds(ready_s=0.01)), store=store)
        early = await ask(app, "GET", "/ready")
        store.gate.set()
        late = await ask(app, "GET", "/ready")
        again = await ask(app, "GET", "/ready")
        listed = await ask(app, "GET", NAMESPACES)
        return early, late, again, listed, store.read

    early, late, again, listed, read = run(story())
    assert (early.status, late.status, again.status) == (503, 200, 200)
    assert "timeout" in early.json["error"]["message"]
    assert listed.json["namespaces"] == [["a"]]
    assert len(read) == 1


def test_a_workspace_that_is_broken_keeps_no_other_from_being_ready():
    async def story():
        store = MemoryStore(SystemClock())
        await filled(store, "broken/one")
        app = make_app(store=store)
        return await ask(app, "GET", "/ready"), await ask(app, "GET", "/iceberg/v1/broken.one/namespaces")

    ready, broken = run(story())
    assert (ready.status, broken.status) == (200, 500)


def test_a_silent_store_is_asked_for_the_names_again():
    async def story():
        store = TroubledStore(SystemClock())
        await filled(store, "default/default")
        app = make_app(store=store)
        store.mood = Mood.DEAF
        before = await ask(app, "GET", "/ready")
        store.mood = Mood.FINE
        return before, await ask(app, "GET", "/ready")

    before, after = run(story())
    assert (before.status, after.status) == (503, 200)


def test_a_root_that_is_gone_makes_the_server_not_ready_and_is_no_empty_catalog(tmp_path):
    root, away = tmp_path / "lake", tmp_path / "away"

    async def story():
        store = LocalStore(str(root), SystemClock(), SystemEntropy(), sync=False)
        app = make_app(store=store)
        assert (await ask(app, "POST", NAMESPACES, b'{"namespace":["a"]}')).status == 200
        seen = []
        for place, elsewhere in ((root, away), (away, root)):
            place.rename(elsewhere)
            seen.append([(await ask(app, "GET", path)).status for path in ("/ready", NAMESPACES, f"{NAMESPACES}/a")])
        await store.close()
        return seen

    assert run(story()) == [[503, 503, 503], [200, 200, 200]]


def test_a_root_that_was_emptied_is_no_empty_catalog(tmp_path):
    """Another folder in its place: nobody takes what is not there for a catalog without names."""
    root = tmp_path / "lake"

    async def story():
        store = LocalStore(str(root), SystemClock(), SystemEntropy(), sync=False)
        app = make_app(store=store)
        assert (await ask(app, "POST", NAMESPACES, b'{"namespace":["a"]}')).status == 200
        root.rename(tmp_path / "away")
        root.mkdir()
        listed = await ask(app, "GET", NAMESPACES)
        await store.close()
        return listed

    assert run(story()).status == 500
