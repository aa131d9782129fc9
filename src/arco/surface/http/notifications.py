"""`POST /api/v1/fold/notify`: somebody wrote segments, and says so, for a fold that does not list.

What is said is kept in the store, so that any fold of the workspace hears of it; one in this server looks at once. It may be said
twice, late, or for what was folded long ago. What must never enter: folding.
"""

from typing import Annotated

import msgspec

from arco.fold.notifying import notify
from arco.iceberg.shape import read
from arco.kernel.limits import FOLD_HINTED_SEGMENTS_MAX
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource

NOTIFY = f"{API}/fold/notify"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class Notification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Segments of the ledger, and receipts of commits, by the names of their objects."""

    segments: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=FOLD_HINTED_SEGMENTS_MAX)]


class Notified(msgspec.Struct, frozen=True):
    notified: int


class Notifications(Resource):
    def endpoints(self) -> list[Endpoint]:
        about = "Say that segments were written, for a fold that does not list"
        return [endpoint("POST", NOTIFY, about, self.post, body=(Notification,), answers={202: (Notified,)})]

    async def post(self, request: Request, asked: Asked) -> Response:
        scope = asked.scope
        said = read(request.json(), Notification, "the notification")
        await notify(self._state.store, scope, said.segments, self._state.clock, self._state.entropy)
        self._state.wake_fold(scope)
        return json_response(Notified(len(said.segments)), 202)
