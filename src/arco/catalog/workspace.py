"""Everything that belongs to one workspace on one server: its parts, made once, handed to whoever needs them."""

from dataclasses import dataclass, field
from typing import Self

from arco.catalog.afterwards import Afterwards
from arco.catalog.committer import Committer
from arco.catalog.idempotency import Markers
from arco.catalog.locations import Locations
from arco.catalog.metadata_files import MetadataFiles
from arco.catalog.pointer import Pointers
from arco.catalog.policy import LocationPolicy
from arco.catalog.receipts import Receipts
from arco.catalog.tier1 import Tier1
from arco.catalog.transaction_records import Records
from arco.catalog.turns import Turns
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.ids import UlidSource
from arco.kernel.limits import TRANSACTION_TABLES_MAX
from arco.kernel.scope import Scope
from arco.kernel.tallies import UNCOUNTED, Tallies
from arco.ledger.appender import Appender
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class Choices:
    """What an operator may choose. `take_turns`: servers on one root wait for one another before they change names.
    `require_uuid7`: keys must say when they were made, so that one past its lifetime is known; without it any UUID will do.
    `transaction_tables_max`: how many tables one transaction may change.
    """

    take_turns: bool = False
    require_uuid7: bool = True
    transaction_tables_max: int = TRANSACTION_TABLES_MAX


@dataclass(frozen=True, slots=True)
class Workspace:
    scope: Scope
    clock: Clock
    entropy: Entropy
    ulids: UlidSource
    tier1: Tier1
    committer: Committer
    records: Records
    pointers: Pointers
    receipts: Receipts
    markers: Markers
    files: MetadataFiles
    locations: Locations
    afterwards: Afterwards
    tallies: Tallies = UNCOUNTED
    policy: LocationPolicy = field(default_factory=LocationPolicy)

    @property
    def is_in_use(self) -> bool:
        """Whether anything is known to be in it, or under way."""
        return self.tier1.held is not None or not self.afterwards.is_idle

    def appender(self) -> Appender:
        """One that appends to the ledger of this workspace."""
        return Appender(self.tier1.store, self.scope, self.clock, self.entropy, stored=self.heard)

    def heard(self, name: object) -> None:
        """A segment was written: told to whoever hears of receipts."""
        self.receipts.hears(str(name))

    @classmethod
    def on(
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
        chosen = choices or Choices()
        turns = Turns(store, scope, clock, entropy) if chosen.take_turns else None
        records = Records(store, scope, clock, entropy)
        tier1 = Tier1(store, scope, clock, entropy, records)
        locations, rules = Locations(base_uri), policy or LocationPolicy()
        return cls(
            scope,
            clock,
            entropy,
            UlidSource(clock, entropy),
            tier1,
            Committer(tier1, clock, entropy, records, turns),
            records,
            Pointers(store, scope, clock, entropy, records),
            Receipts(store, scope, clock, entropy),
            Markers(store, scope, clock, entropy, require_uuid7=chosen.require_uuid7),
            MetadataFiles(store, locations, rules, clock, entropy),
            locations,
            Afterwards(),
            tallies,
            rules,
        )
