"""Links to files of state: exactly those of one snapshot, for as long as they live, to whoever has them."""

import asyncio
import base64
import hashlib
import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from arco.catalog.policy import LocationPolicy
from arco.fold.heads import Heads
from arco.fold.tables import TABLES
from arco.fold.vocabulary import bucket_of
from arco.fold.work import StateFile
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, InvalidInput
from arco.kernel.ids import UlidSource
from arco.kernel.limits import FILE_SENT_BYTES_MAX, FILES_SENT_AT_ONCE_MAX
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.read.cut import Cut, Layers
from arco.read.linked_files import cut_of, linked_files
from arco.storage.memory import MemoryStore
from arco.storage.port import Always, SignedMethod
from arco.surface.http.access import Access
from arco.surface.http.app import App, Setup
from arco.surface.http.byte_ranges import NoSuchPart, Part, part_of
from arco.surface.http.for_clients import ForClients
from arco.surface.http.link_tokens import Linked, LinkTokens
from arco.surface.http.origins import Origins
from arco.surface.http.request_log import LogForm, LogLevel, configure
from arco.surface.http.server_state import ServerState
from fixtures.state.published_state import SCOPE, publish
from fixtures.state.shop_story import told
from fixtures.state.state_world import NOW_MS
from stand_ins.asgi import Answer, Exchange, ask
from stand_ins.hand_clock import HandClock

URLS = "/api/v1/catalog/signed-urls"
HUB = "https://hub.example.com"


@dataclass
class Ground:
    """A server in memory, and a hand on its clock."""

    store: MemoryStore
    clock: HandClock
    snapshots: list[str]

    def app(self, setup: Setup | None = None, seed: int = 1) -> App:
        entropy = SeededEntropy(seed)
        state = ServerState(self.store, "memory://", ForClients(), LocationPolicy(), self.clock, entropy)
        return App(state, UlidSource(self.clock, entropy), setup)

    async def links(self, app: App, asked: Any = None, path: str = URLS, **headers: str) -> Answer:
        return await ask(app, "POST", path, b"" if asked is None else msgspec.json.encode(asked), **headers)

    async def one(self, app: App, table: str = "assets") -> dict[str, Any]:
        found: dict[str, Any] = (await self.links(app, {"tables": [table]})).json["files"][0]
        return found


@pytest.fixture(scope="module")
def published() -> Ground:
    clock = HandClock()
    store = MemoryStore(clock)
    snapshots = asyncio.run(publish(store, told(), NOW_MS, clock, parts=2))
    return Ground(store, clock, snapshots)


@pytest.fixture
def ground(published: Ground) -> Ground:
    published.clock.at_ms = NOW_MS
    return published


def path_of(url: str) -> str:
    return url.removeprefix("http://127.0.0.1:8181")


def problem(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status, answer.json["code"]


run = asyncio.run


# Which files


def test_the_links_of_a_snapshot_lead_to_exactly_its_files(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        answer = await ground.links(app)
        assert answer.headers["cache-control"] == "no-store"
        said = answer.json
        cut = await cut_of(Heads(ground.store, SCOPE, ground.clock, SeededEntropy(2)), None)
        named = {file.key: file for layers in cut.tables.values() for file in layers.files()}
        assert {one["path"] for one in said["files"]} == set(named)
        assert (said["snapshot"], said["via"]) == (ground.snapshots[-1], "server")
        assert said["expires_at"] == "2025-03-21T07:00:00Z"
        for one in said["files"]:
            file = named[one["path"]]
            got = await ask(app, "GET", path_of(one["url"]))
            assert got.status == 200
            assert hashlib.sha256(got.body).hexdigest() == one["checksum"] == file.checksum
            assert (len(got.body), one["rows"]) == (one["bytes"], file.rows)
            assert one["buckets"] == [file.buckets[0], file.buckets[-1]]
        assert {one["layer"] for one in said["files"]} == {0, 1}

    run(test())


def test_the_answer_says_how_the_layers_of_a_table_are_joined(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        said = (await ground.links(app)).json
        tables = {one["table"]: one for one in said["tables"]}
        assert list(tables) == [table.name for table in TABLES]
        for one in said["files"]:
            table = tables[one["table"]]
            columns = pq.read_schema(io.BytesIO((await ask(app, "GET", path_of(one["url"]))).body)).names
            assert columns == [
                *table["key"],
                *(name for group in table["groups"] for name in (*group["columns"], group["order"])),
            ]
        runs = {group["order"]: group["wins"] for group in tables["runs"]["groups"]}
        assert (tables["runs"]["key"], runs["created_order"], runs["state_order"]) == (
            ["bucket", "run_id"],
            "first",
            "last",
        )
        few = (await ground.links(app, {"namespace": "nowhere"})).json
        assert [one["table"] for one in few["tables"]] == ["postings", "trigrams"]

    run(test())


def test_an_older_snapshot_has_links_of_its_own(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        old = (await ground.links(app, {"snapshot": ground.snapshots[0]})).json
        new = (await ground.links(app)).json
        assert old["snapshot"] == ground.snapshots[0]
        assert {one["path"] for one in old["files"]} < {one["path"] for one in new["files"]}
        assert problem(await ground.links(app, {"snapshot": "01JZ3V5Q0E8Y7M2K4T6B9N1D3F"})) == (404, "not_found")

    run(test())


def test_a_scope_is_tables_buckets_or_a_namespace(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()

        async def files(**asked: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await ground.links(app, asked)).json["files"]
            return found

        assert {one["table"] for one in await files(tables=["assets", "runs"])} == {"assets", "runs"}
        low = await files(tables=["assets"], buckets=list(range(128)))
        assert all(one["buckets"][0] < 128 for one in low)
        assert len(low) < len(await files(tables=["assets"]))
        shop = await files(namespace="shop")
        assert {one["table"] for one in shop} == {"postings", "trigrams"}
        assert all(one["buckets"][0] <= bucket_of("shop") <= one["buckets"][1] for one in shop)
        assert len(shop) < len(await files(tables=["postings", "trigrams"]))

    run(test())


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ({"tables": ["nothing"]}, 400, "there is no table 'nothing'"),
        ({"tables": ["assets"], "namespace": "shop"}, 400, "not spread by namespace"),
        ({"namespace": "shop", "buckets": [1]}, 400, "a namespace has one bucket"),
        ({"buckets": [256]}, 400, "buckets"),
        ({"expires_s": 0}, 400, "expires_s"),
        ({"expires_s": 86_401}, 400, "expires_s"),
        ({"pahts": ["x"]}, 400, "pahts"),
        ({"via": "store"}, 400, "no links to sign"),
        ({"paths": ["default/default/_catalog/manifests/root.manifest.json"]}, 404, "is no file of this snapshot"),
        ({"paths": ["../../etc/passwd"]}, 404, "is no file of this snapshot"),
        ({"paths": ["other/default/_catalog/state/assets/assets/0-0.parquet"]}, 404, "is no file of this snapshot"),
    ],
    ids=lambda one: json.dumps(one) if isinstance(one, dict) else None,
)
def test_what_is_not_in_the_snapshot_gets_no_link(ground: Ground, asked: Any, status: int, says: str) -> None:
    answer = run(ground.links(ground.app(), asked))
    assert answer.status == status
    assert says in answer.json["detail"]


def test_links_are_renewed_by_the_paths_they_had(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        first = await ground.one(app)
        again = (await ground.links(app, {"paths": [first["path"]]})).json["files"]
        assert [one["path"] for one in again] == [first["path"]]
        # A file of another table is none of what was asked for, though the snapshot names it.
        assert (await ground.links(app, {"tables": ["runs"], "paths": [first["path"]]})).status == 404

    run(test())


def test_a_manifest_that_names_what_is_not_state_opens_nothing() -> None:
    for key in ("default/default/_catalog/manifests/root.manifest.json", "a/b/_catalog/state/execution/runs/f.parquet"):
        file = StateFile(table="runs", key=key, checksum="c", rows=1, bytes=1, buckets=(1,), least=(), greatest=())
        cut = Cut("s", 1, {"runs": Layers((file,))})
        with pytest.raises(CorruptObject):
            linked_files(cut, Scope.of())


def test_before_the_first_fold_there_are_no_files(ground: Ground) -> None:
    said = run(ground.links(ground.app(), path=f"{URLS}?warehouse=other/place")).json
    assert (said["snapshot"], said["published_at"], said["files"]) == ("", None, [])


def test_a_store_that_signs_is_linked_to_directly(ground: Ground) -> None:
    class Signing(MemoryStore):
        async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
            return f"https://bucket.example.com/{key}?{method}&{ttl_s}"

    async def test() -> None:
        store = Signing(ground.clock)
        await publish(store, told(), NOW_MS, ground.clock)
        signing = Ground(store, ground.clock, [])
        said = (await signing.links(signing.app(), {"expires_s": 60})).json
        assert said["via"] == "store"
        assert all(one["url"] == f"https://bucket.example.com/{one['path']}?GET&60" for one in said["files"])
        through = (await signing.links(signing.app(), {"via": "server"})).json
        assert through["via"] == "server"
        assert through["files"][0]["url"].startswith("http://127.0.0.1:8181/api/v1/catalog/files/")

    run(test())


# Who may read


def test_a_link_needs_no_token_and_asking_for_one_does(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app(Setup(access=Access(Secret("sesame"))))
        assert (await ground.links(app)).status == 401
        found = (await ground.links(app, {"tables": ["runs"]}, Authorization="Bearer sesame")).json["files"][0]
        assert (await ask(app, "GET", path_of(found["url"]))).status == 200

    run(test())


def test_a_link_ends_when_it_says(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        found = (await ground.links(app, {"tables": ["runs"], "expires_s": 10})).json
        path = path_of(found["files"][0]["url"])
        ground.clock.at_ms += 9_999
        assert (await ask(app, "GET", path)).status == 200
        ground.clock.at_ms += 1
        late = await ask(app, "GET", path)
        assert problem(late) == (403, "access_denied")
        assert "expired" in late.json["detail"]

    run(test())


def test_a_link_takes_no_other_parameters(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        path = path_of((await ground.links(app, {"tables": ["runs"]})).json["files"][0]["url"])
        refused = await ask(app, "GET", f"{path}?download=1")
        assert problem(refused)[0] == 400
        assert "download" in refused.json["detail"]

    run(test())


def test_links_are_the_same_for_a_while_so_that_caches_know_them(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()

        async def link(**asked: Any) -> tuple[str, str]:
            answer = (await ground.links(app, {"tables": ["runs"], **asked})).json
            return answer["files"][0]["url"], answer["expires_at"]

        first = await link()
        ground.clock.at_ms += 899_999
        assert await link() == first == (first[0], "2025-03-21T07:00:00Z")
        ground.clock.at_ms += 1
        second = await link()
        assert second == (second[0], "2025-03-21T07:15:00Z")
        assert second[0] != first[0]
        for life_s in (1, 7, 60, 86_400):
            expires = datetime.fromisoformat((await link(expires_s=life_s))[1]).timestamp() * 1000 - ground.clock.at_ms
            assert 750 * life_s <= expires <= 1000 * life_s

    run(test())


def altered(token: str, change: Callable[[list[Any]], None]) -> str:
    said, _, rest = token.partition(".")
    fields = json.loads(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)))
    change(fields)
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=") + "." + rest


def later(fields: list[Any]) -> None:
    fields[4] += 1_000_000


def elsewhere(fields: list[Any]) -> None:
    fields[0], fields[1] = "other/default", fields[1].replace("default/default", "other/default")


def manifest(fields: list[Any]) -> None:
    fields[1] = "default/default/_catalog/manifests/root.manifest.json"


def test_a_link_that_was_changed_opens_nothing(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        path = path_of((await ground.one(app))["url"])
        begin, _, token = path.rpartition("/")
        wrong = [altered(token, change) for change in (later, elsewhere, manifest)]
        said, _, rest = token.partition(".")
        flipped = rest.replace(rest[0], "A" if rest[0] != "A" else "B", 1)
        wrong += [f"{said}.{flipped}", said, f".{rest}", "x", f"{said}.", token + "x", "%C3%BC.x", "a.b.c"]
        for one in wrong:
            assert problem(await ask(app, "GET", f"{begin}/{one}")) == (403, "access_denied"), one
        assert (await ask(app, "GET", path)).status == 200

    run(test())


def test_even_our_own_key_signs_nothing_but_state() -> None:
    """Whoever gets hold of the key alone must not be able to read commits or tables with it."""
    tokens = LinkTokens.of(None, SeededEntropy(1))
    for warehouse, key in (
        ("default/default", "default/default/_catalog/manifests/root.manifest.json"),
        ("default/default", "other/default/_catalog/state/execution/runs/f.parquet"),
        ("default/default", "../secret"),
        ("nowhere", "default/default/_catalog/state/execution/runs/f.parquet"),
    ):
        with pytest.raises(Exception, match="no file of state"):
            tokens.read(tokens.written(Linked(warehouse, key, "c", 1, 10)), 1)


def test_another_server_takes_a_link_only_with_the_same_key(ground: Ground) -> None:
    async def test() -> None:
        shared = Setup(link_key=Secret("k" * 32))
        path = path_of((await ground.one(ground.app(shared, seed=1)))["url"])
        assert (await ask(ground.app(shared, seed=2), "GET", path)).status == 200
        assert (await ask(ground.app(seed=2), "GET", path)).status == 403
        own = path_of((await ground.one(ground.app(seed=1)))["url"])
        assert (await ask(ground.app(seed=2), "GET", own)).status == 403

    run(test())


def test_there_is_no_listing_and_no_other_method(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        path = path_of((await ground.one(app))["url"])
        for wrong in ("/api/v1/catalog/files", "/api/v1/catalog/files/", "/api/v1/catalog/files/default/default"):
            assert (await ask(app, "GET", wrong)).status in {403, 404}
        for method in ("PUT", "POST", "DELETE", "PATCH"):
            assert (await ask(app, method, path)).status == 405

    run(test())


# Parts


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", Part(0, 1)),
        ("bytes=2-4", Part(2, 3)),
        ("bytes=2-", Part(2, 8)),
        ("bytes=2-99", Part(2, 8)),
        ("bytes=-3", Part(7, 3)),
        ("bytes=-99", Part(0, 10)),
        ("bytes=9-9", Part(9, 1)),
        ("bytes=10-", NoSuchPart),
        ("bytes=10-12", NoSuchPart),
        ("bytes=-0", NoSuchPart),
        ("bytes=0-1,3-4", None),
        ("bytes=4-2", None),
        ("bytes=a-b", None),
        ("items=0-1", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes= 0-1", None),
    ],
)
def test_a_range_is_read_as_the_standard_has_it(header: str | None, expected: Any) -> None:
    found = part_of(header, 10)
    assert isinstance(found, NoSuchPart) if expected is NoSuchPart else found == expected


def test_parts_of_a_file_are_its_bytes(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        found = await ground.one(app)
        path = path_of(found["url"])
        whole = (await ask(app, "GET", path)).body
        size = len(whole)
        for header, start, end in (
            ("bytes=4-9", 4, 10),
            ("bytes=-8", size - 8, size),
            (f"bytes={size - 1}-", size - 1, size),
        ):
            part = await ask(app, "GET", path, Range=header)
            assert (part.status, part.body) == (206, whole[start:end])
            assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
            assert part.headers["content-length"] == str(end - start)
        beyond = await ask(app, "GET", path, Range=f"bytes={size}-")
        assert beyond.status == 416
        assert beyond.headers["content-range"] == f"bytes */{size}"
        several = await ask(app, "GET", path, Range="bytes=0-1,4-5")
        assert (several.status, several.body) == (200, whole)

    run(test())


def test_a_head_says_what_a_get_would_and_sends_nothing(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        found = await ground.one(app)
        path = path_of(found["url"])
        head = await ask(app, "HEAD", path, Range="bytes=0-3")
        got = await ask(app, "GET", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(found["bytes"]) == got.headers["content-length"]
        assert got.headers["etag"] == f'"{found["checksum"]}"'
        assert got.headers["accept-ranges"] == "bytes"
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["content-type"] == "application/vnd.apache.parquet"
        assert got.headers["cache-control"] == "private, max-age=3600, immutable"
        assert got.headers["referrer-policy"] == "no-referrer"
        assert "content-encoding" not in got.headers

    run(test())


def test_what_a_client_already_has_is_not_sent_again(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        found = await ground.one(app)
        path, etag = path_of(found["url"]), f'"{found["checksum"]}"'
        assert (await ask(app, "GET", path, If_None_Match=f'"x", W/{etag}')).status == 304
        assert (await ask(app, "GET", path, Range="bytes=0-3", If_Range=etag)).status == 206
        assert (await ask(app, "GET", path, Range="bytes=0-3", If_Range='"another"')).status == 200

    run(test())


def test_a_file_that_is_gone_or_of_another_size_is_not_sent(ground: Ground) -> None:
    async def test() -> None:
        store = MemoryStore(ground.clock)
        own = Ground(store, ground.clock, await publish(store, told(), NOW_MS, ground.clock))
        app = own.app()
        gone, damaged = await own.one(app, "assets"), await own.one(app, "runs")
        await store.delete(gone["path"])
        await store.put(damaged["path"], b"short", Always())
        assert problem(await ask(app, "GET", path_of(gone["url"]))) == (404, "not_found")
        assert problem(await ask(app, "GET", path_of(damaged["url"]))) == (500, "corrupt_object")

    run(test())


class Watched(MemoryStore):
    """Remembers how much was asked for at a time."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self.pieces: list[int] = []
        self.spoilt = False

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        self.pieces.append(length)
        await asyncio.sleep(0)  # as every store does
        return b"" if self.spoilt and start else await super().get_range(key, start, length)


def large(ground: Ground) -> tuple[Watched, App, str, bytes]:
    """A link to an object of several pieces."""
    data = bytes(range(256)) * (FILE_SENT_BYTES_MAX // 100)
    store, key = Watched(ground.clock), "default/default/_catalog/state/execution/runs/large.parquet"
    run(store.put(key, data, Always()))
    app = Ground(store, ground.clock, []).app(Setup(link_key=Secret("k" * 32)))
    token = LinkTokens.of(Secret("k" * 32), SeededEntropy(1)).written(
        Linked("default/default", key, "c" * 64, len(data), NOW_MS + 1000)
    )
    return store, app, f"/api/v1/catalog/files/{token}", data


def test_a_large_file_is_sent_a_piece_at_a_time(ground: Ground) -> None:
    store, app, path, data = large(ground)
    assert run(ask(app, "GET", path)).body == data
    assert len(store.pieces) == 3
    assert max(store.pieces) <= FILE_SENT_BYTES_MAX
    store.pieces.clear()
    assert run(ask(app, "HEAD", path)).headers["content-length"] == str(len(data))
    assert store.pieces == []


def test_a_client_that_went_away_is_not_sent_to(ground: Ground) -> None:
    store, app, path, _ = large(ground)
    exchange = Exchange("GET", path).disconnect()
    run(exchange.run(app))
    assert len(store.pieces) < 3


def test_a_file_that_ends_early_is_never_taken_for_whole(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    store, app, path, data = large(ground)
    store.spoilt = True
    ended: list[bool] = []

    class Watching(Exchange):
        async def send(self, message: Any) -> None:
            ended.append(message["type"] == "http.response.body" and not message.get("more_body"))
            await super().send(message)

    with caplog.at_level(logging.ERROR, "arco.http"):
        logging.getLogger("arco.http").propagate = True
        answer = run(Watching("GET", path).run(app))
    assert 0 < len(answer.body) < len(data) == int(answer.headers["content-length"])
    assert not any(ended)
    assert "cut off" in caplog.text


def test_no_more_files_are_sent_at_once_than_memory_allows(ground: Ground) -> None:
    _, app, path, _ = large(ground)

    async def test() -> None:
        waiting = asyncio.Event()

        class Slow(Exchange):
            async def send(self, message: Any) -> None:
                await super().send(message)
                if message["type"] == "http.response.body":
                    await waiting.wait()

        readers = [asyncio.create_task(Slow("GET", path).run(app)) for _ in range(FILES_SENT_AT_ONCE_MAX)]
        probe = Exchange("GET", path)
        while sum(not one.done() for one in readers) < FILES_SENT_AT_ONCE_MAX or probe.answer.status != 503:
            probe = Exchange("GET", path)
            task = asyncio.create_task(probe.run(app))
            await asyncio.wait({task})
        waiting.set()
        assert {answer.status for answer in await asyncio.gather(*readers)} == {200}
        assert (await ask(app, "GET", path)).status == 200

    run(asyncio.wait_for(test(), 60))


# Pages of other sites


def test_by_default_no_other_site_may_ask(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app()
        path = path_of((await ground.one(app))["url"])
        for origin in (HUB, "http://127.0.0.1:5173", "http://localhost:8181", "null"):
            for method, place in (("GET", path), ("POST", URLS), ("OPTIONS", path), ("OPTIONS", URLS)):
                answer = await ask(app, method, place, Origin=origin)
                assert answer.status == 403
                assert "access-control-allow-origin" not in answer.headers
        same = await ask(app, "GET", path, Origin="http://127.0.0.1:8181")
        assert same.status == 200

    run(test())


def test_a_site_that_is_named_may_ask_these_routes_and_no_others(ground: Ground) -> None:
    async def test() -> None:
        app = ground.app(Setup(access=Access(Secret("sesame"), origins=Origins.of((HUB,)))))
        asked = {"Origin": HUB, "Access_Control_Request_Method": "GET", "Access_Control_Request_Headers": "range"}
        found = (await ground.links(app, {"tables": ["runs"]}, Authorization="Bearer sesame", Origin=HUB)).json["files"][0]
        path = path_of(found["url"])
        for place in (URLS, path):
            before = await ask(app, "OPTIONS", place, **asked)
            assert (before.status, before.body) == (204, b"")
            assert before.headers["access-control-allow-origin"] == HUB
            assert "Range" in before.headers["access-control-allow-headers"]
            assert "Authorization" in before.headers["access-control-allow-headers"]
            assert "access-control-allow-credentials" not in before.headers
        part = await ask(app, "GET", path, Origin=HUB, Range="bytes=0-3")
        assert (part.status, part.headers["access-control-allow-origin"], part.headers["vary"]) == (206, HUB, "Origin")
        assert "Content-Range" in part.headers["access-control-expose-headers"]
        # What went wrong is told to the page too, or it could not tell why.
        wrong = await ask(app, "GET", "/api/v1/catalog/files/x", Origin=HUB)
        assert (wrong.status, wrong.headers["access-control-allow-origin"]) == (403, HUB)
        assert (await ask(app, "OPTIONS", path, **asked | {"Origin": "https://evil.example.com"})).status == 403
        elsewhere = await ask(app, "GET", "/api/v1/tables", Origin=HUB, Authorization="Bearer sesame")
        assert elsewhere.status == 403
        assert "access-control-allow-origin" not in elsewhere.headers

    run(test())


@pytest.mark.parametrize(
    "given", ["*", "null", "hub.example.com", "https://a.b/path", "https://A.b", "ftp://a.b", "https://"]
)
def test_an_origin_is_one_site(given: str) -> None:
    with pytest.raises(InvalidInput):
        Origins.of((given,))


# The log


def test_no_line_of_the_log_has_a_link(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> list[str]:
        app = ground.app()
        path = path_of((await ground.one(app))["url"])
        for method, place in (
            ("GET", path), ("HEAD", path), ("PUT", path),
            ("GET", f"{path}/more"), ("GET", f"{path}x"), ("GET", f"/proxied{path}"),
        ):  # fmt: skip
            await ask(app, method, place)
        return [path.rpartition("/")[2], path.rpartition("/")[2].partition(".")[0]]

    for form in LogForm:
        configure(form, LogLevel.DEBUG)
        secrets = run(test())
        said = capsys.readouterr().err
        assert said.count("/api/v1/catalog/files/") >= 6
        assert not [one for one in secrets if one in said]
