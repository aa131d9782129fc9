"""Questions over HTTP: which state is asked, which page of it, and whether the asker knows the answer already.

    parameters → binding → reader of that state → known already? 304 : the question → answer

An answer follows from its snapshot and its question, so both make its ETag, and a client that shows it is answered before
anything is looked up. Fresh answers have none, nor have those that depend on the time of asking. What must never enter: the
questions themselves.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import SnapshotId, clip
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX, LINEAGE_DEPTH_MAX, PARTITION_KEY_BYTES_MAX
from arco.read.answers import Answer
from arco.read.binding import Ingestion
from arco.read.library import Binding, Library, Opened
from arco.read.pages import Window, snapshot_of
from arco.read.reader import Reader
from arco.surface.http.declaring import Asked, Endpoint, endpoint
from arco.surface.http.exchange import Request, Response, is_known, json_response
from arco.surface.http.server_state import ServerState

# Another version may answer in another shape.
_VERSION = version("arco")
_YEAR_9999_MS = 253_402_300_799_999

# Parameters that many questions have.
AssetName = Annotated[
    str,
    Meta(max_length=300, description="An asset: its name, a name that it had, or its id; another table: its name or uuid."),
]
RunName = Annotated[str, Meta(max_length=64, description="A run, by its id.")]
PartitionName = Annotated[
    str,
    Meta(
        max_length=PARTITION_KEY_BYTES_MAX,
        description="A partition: its key, such as date=2025-01-15, or its id; empty for an asset without partitions.",
    ),
]
Depth = Annotated[int, Meta(ge=1, le=LINEAGE_DEPTH_MAX, description="How many edges away.")]
Word = Annotated[str, Meta(min_length=1, max_length=300)]
Short = Annotated[str, Meta(max_length=64)]
_Cursor = Annotated[str, Meta(max_length=16_384)]


class Bound(Asked, frozen=True, kw_only=True):
    """Which state a question is about: at most one of these; none of them is the current one."""

    as_of: Annotated[
        Short | None,
        Meta(
            description="What readers saw at a moment: RFC 3339, UTC unless it says otherwise, or ms since 1970.",
        ),
    ] = None
    as_of_run: Annotated[Short | None, Meta(description="The first state that had everything a run published.")] = None
    snapshot: Annotated[Short | None, Meta(description="A state by its snapshot id.")] = None
    fresh: Annotated[bool, Meta(description="Add what is not folded yet to the current state.")] = False

    def binding(self) -> Binding:
        at_ms = None if self.as_of is None else moment_ms(self.as_of)
        return Binding(at_ms, self.as_of_run, None if self.snapshot is None else SnapshotId(self.snapshot), self.fresh)


class Listed(Bound, frozen=True, kw_only=True):
    """A list, page by page."""

    limit: Annotated[int, Meta(ge=1, le=ANSWER_PAGE_ITEMS_MAX, description="How many items a page has at most.")] = 100
    cursor: Annotated[
        _Cursor | None,
        Meta(
            description="Where a page begins: next_cursor of the page before. It keeps to the same snapshot.",
        ),
    ] = None

    @property
    def window(self) -> Window:
        return Window(self.limit, self.cursor)

    def binding(self) -> Binding:
        """A cursor belongs to a snapshot: the pages of a list are all of that one, whatever is current by then."""
        wanted = super().binding()
        if wanted == Binding() and self.cursor is not None and (pinned := snapshot_of(self.cursor)):
            return Binding(snapshot_id=SnapshotId(pinned))
        return wanted


class OfAsset(Bound, frozen=True, kw_only=True):
    """A question about one asset."""

    asset: AssetName


class ListedOfAsset(Listed, frozen=True, kw_only=True):
    """A list of something that one asset has."""

    asset: AssetName


@dataclass(frozen=True, slots=True)
class Sitting:
    """What a question has before it. `now_ms` is the time that answers are computed for: in the past that of the state."""

    reader: Reader
    library: Library
    now_ms: int
    ingestion: Ingestion | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question as it is asked over HTTP. `by_clock`: the answer also follows from the time of asking."""

    path: str
    about: str
    asked: type[Bound]
    answer: Any
    ask: Callable[[Sitting, Any], Awaitable[Answer]]
    by_clock: bool = False

    def endpoint(self, state: ServerState) -> Endpoint:
        async def asks(request: Request, asked: Bound) -> Response:
            return await answered(state, self, request, asked)

        answers = {200: (self.answer,)}
        return endpoint("GET", self.path, self.about, asks, asked=self.asked, answers=answers, tagged=True)


async def answered(state: ServerState, question: Question, request: Request, asked: Bound) -> Response:
    _refuse_controls(asked)
    library = state.libraries.of(asked.scope)
    opened = await library.open(asked.binding())
    try:
        sitting = Sitting(opened.reader, library, _now_ms(state, asked, opened), opened.ingestion)
        etag = _etag(question, asked, opened, sitting)
        if etag is None:
            return json_response(await _told(question, asked, opened, sitting), headers={"Cache-Control": "no-store"})
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        if is_known(request, etag):
            return Response(304, headers=headers)
        return json_response(await _told(question, asked, opened, sitting), headers=headers)
    finally:
        if asked.fresh:
            opened.reader.close()


async def _told(question: Question, asked: Bound, opened: Opened, sitting: Sitting) -> Answer:
    answer = await question.ask(sitting, asked)
    if not asked.fresh and opened.warning is None:
        return answer
    return msgspec.structs.replace(answer, fresh=asked.fresh, warning=opened.warning)


def moment_ms(text: str) -> int:
    """A moment as RFC 3339 writes it, or in milliseconds. What lies before 1970 is the beginning."""
    try:
        if text.isascii() and text.isdigit():
            at_ms = int(text)
        else:
            moment = datetime.fromisoformat(text)
            at_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{clip(text)!r} is no moment", hint="write 2025-01-31T12:00:00Z (a + as %2B), or milliseconds since 1970"
        ) from None
    if at_ms > _YEAR_9999_MS:
        raise InvalidInput(f"{clip(text)!r} lies after the year 9999")
    return max(0, at_ms)


def _etag(question: Question, asked: Bound, opened: Opened, sitting: Sitting) -> str | None:
    pinned = (asked.as_of, asked.as_of_run, asked.snapshot) != (None, None, None)
    if asked.fresh or (question.by_clock and not pinned):
        return None
    about = {
        name: value for name, value in msgspec.structs.asdict(asked).items() if name not in Bound.__struct_fields__
    } | {
        "scope": asked.scope.warehouse,
        "snapshot": opened.reader.cut.snapshot_id,
        "warning": opened.warning,
        "ingestion": opened.ingestion,
        "at": sitting.now_ms if question.by_clock else None,
        "version": _VERSION,
    }
    return f'"{fingerprint("answer", question.path, *(f"{name}={about[name]!r}" for name in sorted(about)))[:32]}"'


def _now_ms(state: ServerState, asked: Bound, opened: Opened) -> int:
    now_ms = state.clock.now_ms()
    if asked.as_of is not None:
        return min(now_ms, moment_ms(asked.as_of))
    return now_ms if (asked.snapshot, asked.as_of_run) == (None, None) else opened.reader.cut.published_ms


def _refuse_controls(asked: Bound) -> None:
    for name, value in msgspec.structs.asdict(asked).items():
        if isinstance(value, str) and any(letter < " " or letter == "\x7f" for letter in value):
            raise InvalidInput(f"{name} has a control character in it")
