"""`GET /api/v1/fold/dead-letters`: events that could not be folded, each with the reason.

They are objects beside the ledger and belong to no snapshot: what a newer Arco has folded since keeps its letter. What must never
enter: deciding what is refused.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from arco.fold.dead_letters import LetterPage, letters
from arco.fold.tables import FOLDED_FROM
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.storage.keys import Head
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource

DEAD_LETTERS = f"{API}/fold/dead-letters"

_Cursor = Annotated[str, Meta(max_length=300, pattern=r"^[A-Za-z0-9_/-]+(\.json)?$")]


class LettersAsked(Asked, frozen=True, kw_only=True):
    offers: ClassVar[Mapping[str, Collection[str]]] = {"head": tuple(one.value for one in FOLDED_FROM)}
    head: Annotated[Head | None, Meta(description="What one head could not fold.")] = None
    limit: Annotated[int, Meta(ge=1, le=ANSWER_PAGE_ITEMS_MAX, description="How many items a page has at most.")] = 100
    cursor: Annotated[_Cursor | None, Meta(description="Where a page begins: next_cursor of the page before.")] = None


class DeadLetters(Resource):
    def endpoints(self) -> list[Endpoint]:
        about = "Events that could not be folded, with the reason"
        return [endpoint("GET", DEAD_LETTERS, about, self.get, asked=LettersAsked, answers={200: (LetterPage,)})]

    async def get(self, _: Request, asked: LettersAsked) -> Response:
        found = await letters(self._state.store, asked.scope, asked.head, limit=asked.limit, cursor=asked.cursor)
        return json_response(found, headers={"Cache-Control": "no-store"})
