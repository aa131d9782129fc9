"""`POST /api/v1/fold/notify`: somebody wrote segments, and says so, for a fold that does not list.

What is said is kept in the store, so that any fold of the workspace hears of it; one in this server looks at once. It may be said
twice, late, or for what was folded long ago. What must never enter: folding.
"""

from typing import Annotated

import msgspec

from arco.fold.notifying import notify
from arco.iceberg.shape import read
from arco.kernel.limits import FOLD_HINTED_SEGMENTS_MAX
from arco.surface.http.events import scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource
from arco.surface.http.routes import Route, route

NOTIFY = "/api/v1/fold/notify"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class _Notification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    segments: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=FOLD_HINTED_SEGMENTS_MAX)]


class Notifications(Resource):
    def routes(self) -> list[Route]:
        return [route("POST", NOTIFY, self.post)]

    async def post(self, request: Request) -> Response:
        scope = scope_of(request)
        said = read(request.json(), _Notification, "the notification")
        await notify(self._state.store, scope, said.segments, self._state.clock, self._state.entropy)
        self._state.wake_fold(scope)
        return json_response({"notified": len(said.segments)}, 202)
