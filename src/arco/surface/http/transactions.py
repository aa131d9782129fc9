"""Transactions: changes of several tables that become visible together, or not at all."""

from arco.catalog.idempotency import RequestKey
from arco.iceberg import requests
from arco.kernel.canonical_json import JsonValue
from arco.kernel.ids import TransactionId, new_uuid7
from arco.surface.http.exchange import Request, Response, no_content
from arco.surface.http.resource import PREFIX, Resource, source_of
from arco.surface.http.routes import Route, route


class TransactionResource(Resource):
    def routes(self) -> list[Route]:
        return [route("POST", f"{PREFIX}/transactions/commit", self.commit)]

    async def commit(self, request: Request) -> Response:
        body = request.json()
        changes = requests.parse_commit_transaction(body)
        key = self._key(request, body)
        await self._state.transactions(self.scope(request)).commit(changes, key, source_of(request))
        return no_content()

    def _key(self, request: Request, body: JsonValue) -> RequestKey:
        """A transaction always has a key that says its time: its record lies where that time says."""
        key = self.key(request, "commitTransaction", body)
        if key.durable:
            return RequestKey(str(TransactionId(key.key)), key.operation, key.request_hash)
        made = new_uuid7(self._state.clock, self._state.entropy)
        return RequestKey(made, key.operation, key.request_hash, durable=False)
