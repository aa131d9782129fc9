"""What a server keeps between requests: one catalog per tenant and workspace that was asked for."""

from collections.abc import Mapping

from arco.catalog.catalog import Catalog
from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.scope import Scope
from arco.storage.port import ObjectStore


class ServerState:
    """The catalogs of one root."""

    def __init__(
        self,
        store: ObjectStore,
        base_uri: str,
        client_config: Mapping[str, str],
        policy: LocationPolicy,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self.store = store
        self.client_config = client_config
        self._base_uri = base_uri
        self._policy = policy
        self._clock = clock
        self._entropy = entropy
        self._open: dict[Scope, Catalog] = {}

    def catalog(self, scope: Scope) -> Catalog:
        found = self._open.get(scope)
        if found is None:
            found = Catalog.open(self.store, self._base_uri, scope, self._clock, self._entropy, self._policy)
            self._open[scope] = found
        return found

    async def settle(self) -> None:
        """Finish what was left to do after answers."""
        for catalog in self._open.values():
            await catalog.parts.afterwards.settle()
