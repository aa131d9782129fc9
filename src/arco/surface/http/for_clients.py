"""What clients get from a server beside metadata: properties of the catalog and of tables, and credentials."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arco.govern.vending import Vending


@dataclass(frozen=True, slots=True)
class ForClients:
    """`config` travels with every table, `defaults` with the catalog; `vending` is None if nothing is handed out."""

    config: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    vending: Vending | None = None
