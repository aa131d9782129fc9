"""What a server keeps between requests: one open workspace per tenant and workspace that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco.catalog.commits import Commits
from arco.catalog.policy import LocationPolicy
from arco.catalog.relations import Relations
from arco.catalog.staging import Staging
from arco.catalog.subject import Tables, Views
from arco.catalog.workspace import Workspace
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable, CommitView, CreateTable, CreateView
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.scope import Scope
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    parts: Workspace
    table_commits: Commits[TableMetadata, CommitTable]
    tables: Relations[TableMetadata, CreateTable]
    staging: Staging
    view_commits: Commits[ViewMetadata, CommitView]
    views: Relations[ViewMetadata, CreateView]
    client_config: Mapping[str, str]


class ServerState:
    """The workspaces of one root."""

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
        self._base_uri = base_uri
        self._client_config = client_config
        self._policy = policy
        self.clock = clock
        self._entropy = entropy
        self._open: dict[Scope, OpenWorkspace] = {}

    def workspace(self, scope: Scope) -> OpenWorkspace:
        found = self._open.get(scope)
        if found is None:
            parts = Workspace.on(self.store, self._base_uri, scope, self.clock, self._entropy, self._policy)
            tables, views = Tables(), Views()
            table_commits, view_commits = (
                Commits(parts, tables, self._policy.allows),
                Commits(parts, views, self._policy.allows),
            )
            table_names = Relations(parts, table_commits, tables)
            found = OpenWorkspace(
                parts,
                table_commits,
                table_names,
                Staging(parts, table_names, self._policy.allows),
                view_commits,
                Relations(parts, view_commits, views),
                self._client_config,
            )
            self._open[scope] = found
        return found

    async def settle(self) -> None:
        """Finish what was left to do after answers."""
        for workspace in self._open.values():
            await workspace.table_commits.settle()
            await workspace.view_commits.settle()
