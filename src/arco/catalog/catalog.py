"""The catalog of one workspace: everything that can be asked of it, assembled once.

The server keeps one per workspace that was asked for; the command line opens one for a command. What must never enter: any
rule. The rules are in the parts.
"""

from dataclasses import dataclass
from functools import partial
from typing import Self

from arco.catalog.bases import Bases
from arco.catalog.commits import Commits
from arco.catalog.policy import LocationPolicy
from arco.catalog.proposals import is_proposal
from arco.catalog.registering import Registering
from arco.catalog.relations import Relations
from arco.catalog.staging import Staging
from arco.catalog.subject import Tables, Views
from arco.catalog.workspace import Choices, Workspace
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable, CommitView, CreateTable, CreateView
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.scope import Scope
from arco.kernel.tallies import UNCOUNTED, Tallies
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class Catalog:
    parts: Workspace
    tables: Relations[TableMetadata, CreateTable]
    table_commits: Commits[TableMetadata, CommitTable]
    registering: Registering[TableMetadata]
    staging: Staging
    views: Relations[ViewMetadata, CreateView]
    view_commits: Commits[ViewMetadata, CommitView]
    registering_views: Registering[ViewMetadata]

    def beside(self, scope: Scope) -> "Catalog":
        """The catalog of another workspace of the same root, to be read."""
        parts = self.parts
        return Catalog.open(parts.tier1.store, parts.locations.base, scope, parts.clock, parts.entropy)

    @classmethod
    def open(
        cls,
        store: ObjectStore,
        base_uri: str,
        scope: Scope,
        clock: Clock,
        entropy: Entropy,
        policy: LocationPolicy | None = None,
        choices: Choices | None = None,
        tallies: Tallies = UNCOUNTED,
    ) -> Self:
        """A catalog on a store. Nothing is read or written before it is used."""
        rules = policy or LocationPolicy()
        parts = Workspace.on(store, base_uri, scope, clock, entropy, rules, choices, tallies)
        table, view = Tables(), Views(partial(is_proposal, parts))
        table_bases, view_bases = Bases(parts, table), Bases(parts, view)
        tables = Relations(parts, table, table_bases, rules.allows)
        views = Relations(parts, view, view_bases, rules.allows)
        return cls(
            parts,
            tables,
            Commits(parts, table, table_bases, rules.allows),
            Registering(parts, tables, rules.allows),
            Staging(parts, tables, rules.allows),
            views,
            Commits(parts, view, view_bases, rules.allows),
            Registering(parts, views, rules.allows),
        )
