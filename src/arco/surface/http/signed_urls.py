"""`POST /api/v1/catalog/signed-urls`: short-lived links to exactly the files of one snapshot, for browsers and engines.

The store signs them where it can, so that nothing flows through this server; otherwise they lead to `state_files.py`. What must
never enter: which files may be linked (`read/linked_files.py`).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from arco.fold.heads import Heads
from arco.fold.vocabulary import BUCKET, BUCKETS, Table, Wins
from arco.iceberg.shape import read
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.limits import STATE_LINK_TTL_S, STATE_LINK_TTL_S_MAX, STATE_LINKS_MAX
from arco.kernel.scope import Scope
from arco.read.linked_files import LinkedFile, Wanted, cut_of, linked_files, linked_tables
from arco.storage.port import SignedMethod
from arco.surface.http.access import host_of
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.link_tokens import Linked, LinkTokens
from arco.surface.http.resource import Resource
from arco.surface.http.server_state import ServerState
from arco.surface.http.state_files import FILES

SIGNED_URLS = f"{API}/catalog/signed-urls"
_STEPS_OF_A_LIFE = 4

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
Bucket = Annotated[int, msgspec.Meta(ge=0, lt=BUCKETS)]
Life = Annotated[int, msgspec.Meta(ge=1, le=STATE_LINK_TTL_S_MAX)]


class LinksAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    snapshot: Name | None = None
    tables: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=100)] | None = None
    namespace: Name | None = None
    buckets: Annotated[tuple[Bucket, ...], msgspec.Meta(min_length=1, max_length=BUCKETS)] | None = None
    paths: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=STATE_LINKS_MAX)] | None = None
    expires_s: Life = STATE_LINK_TTL_S
    via: Literal["store", "server"] | None = None


class FileLink(msgspec.Struct, frozen=True, kw_only=True):
    """One file, with what its manifest says of it. `buckets` are the least and the greatest that it has rows of."""

    table: str
    layer: int
    path: str
    url: str
    bytes: int
    rows: int
    checksum: str
    buckets: tuple[int, int]


class JoinedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Columns that one layer gives a row together: the one whose `order` is the first, or the last, as text."""

    wins: Wins
    order: str
    columns: tuple[str, ...]


class LinkedTable(msgspec.Struct, frozen=True, kw_only=True):
    """How rows of one key in several layers become one row. Every column of a file is in the key, a group, or an order.

    `grown`: files of before a column was added do not have it.
    """

    table: str
    key: tuple[str, ...]
    groups: tuple[JoinedGroup, ...]
    grown: bool = False


class FileLinks(msgspec.Struct, frozen=True, kw_only=True):
    """`via` says who answers the links. `tables` are those that were asked for, also where they have no file."""

    snapshot: str
    published_at: datetime | None
    expires_at: datetime
    via: str
    tables: tuple[LinkedTable, ...]
    files: tuple[FileLink, ...]


class SignedUrls(Resource):
    def __init__(self, state: ServerState, tokens: LinkTokens, scheme: str) -> None:
        super().__init__(state)
        self._tokens = tokens
        self._scheme = scheme

    def endpoints(self) -> list[Endpoint]:
        about = "Links to exactly the files of one snapshot, for a while"
        return [
            endpoint("POST", SIGNED_URLS, about, self.post, body=(LinksAsked,), answers={200: (FileLinks,)}, across=True)
        ]

    async def post(self, request: Request, of: Asked) -> Response:
        scope = of.scope
        asked = read(request.json() if request.body else {}, LinksAsked, "the request")
        state = self._state
        cut = await cut_of(Heads(state.store, scope, state.clock, state.entropy), asked.snapshot)
        wanted = Wanted(asked.tables, asked.namespace, asked.buckets, asked.paths)
        found = linked_files(cut, scope, wanted)
        if len(found) > STATE_LINKS_MAX:
            raise TooLarge(f"{len(found)} files are in this scope", hint="name tables or buckets")
        now_ms = state.clock.now_ms()
        own_ms = _rounded_expiry_ms(now_ms, asked.expires_s)
        urls, via = await self._urls(found, asked, self._own(request, scope, own_ms))
        answer = FileLinks(
            snapshot=cut.snapshot_id,
            published_at=_moment(cut.published_ms) if cut.snapshot_id else None,
            expires_at=_moment(own_ms if via == "server" else now_ms + asked.expires_s * 1000),
            via=via,
            tables=tuple(map(_table, linked_tables(wanted))),
            files=tuple(map(_link, found, urls)),
        )
        # Links are keys: nothing on the way may keep them.
        return json_response(answer, headers={"Cache-Control": "no-store"})

    async def _urls(
        self, found: tuple[LinkedFile, ...], asked: LinksAsked, own: Callable[[LinkedFile], str]
    ) -> tuple[list[str], str]:
        if asked.via != "server":
            try:
                store = self._state.store
                return [await store.sign(one.file.key, SignedMethod.GET, asked.expires_s) for one in found], "store"
            except InvalidInput:
                # It has no way to sign; that its lifetime is within bounds was checked before.
                if asked.via == "store":
                    raise
        return [own(one) for one in found], "server"

    def _own(self, request: Request, scope: Scope, expires_ms: int) -> Callable[[LinkedFile], str]:
        host = host_of(request.headers)
        if host is None:
            raise InvalidInput("the Host of this request cannot stand in a link")
        begin = f"{self._scheme}://{host}{FILES}"

        def url(one: LinkedFile) -> str:
            file = one.file
            return (
                f"{begin}/{self._tokens.written(Linked(scope.warehouse, file.key, file.checksum, file.bytes, expires_ms))}"
            )

        return url


def _table(table: Table) -> LinkedTable:
    groups = (
        JoinedGroup(wins=group.wins, order=group.order, columns=tuple(column.name for column in group.columns))
        for group in table.groups
    )
    return LinkedTable(table=table.name, key=(BUCKET, *table.key_names), groups=tuple(groups), grown=table.has_grown)


def _link(one: LinkedFile, url: str) -> FileLink:
    file = one.file
    return FileLink(
        table=file.table,
        layer=one.layer,
        path=file.key,
        url=url,
        bytes=file.bytes,
        rows=file.rows,
        checksum=file.checksum,
        buckets=(min(file.buckets, default=0), max(file.buckets, default=0)),
    )


def _rounded_expiry_ms(now_ms: int, life_s: int) -> int:
    """When the server's own links end: a quarter earlier at most. So whoever asks again soon gets the same links, and a browser
    finds in its cache what it fetched through them."""
    step_ms = life_s * 1000 // _STEPS_OF_A_LIFE
    return (now_ms + life_s * 1000) // step_ms * step_ms


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
