"""What clients get from a server beside metadata: properties of the catalog and of tables, and credentials."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arco.govern.vending import Vending
from arco.kernel.fingerprint import fingerprint
from arco.surface.http.client_config import has_secrets

NOT_KEPT = {"Cache-Control": "no-store"}
"""Of an answer that lets its reader in somewhere: no proxy and no browser keeps it."""


@dataclass(frozen=True, slots=True)
class ForClients:
    """`config` travels with every table, `defaults` with the catalog; `vending` is None if nothing is handed out."""

    config: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    vending: Vending | None = None
    mark: str = field(init=False)
    """Which `config` it is, and what credentials are good for, for tags: who was told something else by an earlier server has to
    hear of it. Empty for none."""
    headers: Mapping[str, str] = field(init=False)
    """What goes with every answer that has `config`."""

    def __post_init__(self) -> None:
        words = [part for pair in sorted(self.config.items()) for part in pair]
        if self.vending is not None:
            words.append(self.vending.access)
        mark = fingerprint("config of tables", *words)[:16] if words else ""
        object.__setattr__(self, "mark", mark)
        object.__setattr__(self, "headers", NOT_KEPT if has_secrets(self.config) else {})
