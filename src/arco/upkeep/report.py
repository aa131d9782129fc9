"""What one job of upkeep did, as data: the table that people see, the event that the ledger gets and the JSON say the same."""

from collections import Counter

import msgspec

from arco.kernel.limits import UPKEEP_EXAMPLES_MAX
from arco.storage.port import Listed


class Gone(msgspec.Struct, frozen=True):
    """One object that went, or would go, and why it is garbage."""

    key: str
    size_bytes: int
    age_s: int
    why: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one job. Ages are by the store's clock, and of what was deleted (or would be).

    `changed` counts what was changed and not deleted: segments moved aside, tables that can no longer be restored. `kept` are
    the reasons to keep an object, with how many. `trouble` is what a person should look at; nothing was deleted for it.
    """

    kind: str
    dry_run: bool
    looked_at: int = 0
    deleted: int = 0
    bytes: int = 0
    changed: int = 0
    kept: dict[str, int] = {}
    why: dict[str, int] = {}
    oldest_s: int | None = None
    youngest_s: int | None = None
    examples: tuple[Gone, ...] = ()
    trouble: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str | None = None

    @property
    def did_something(self) -> bool:
        return bool(self.deleted or self.changed)

    @property
    def is_well(self) -> bool:
        """Whether nobody has to look at anything."""
        return not self.trouble and self.failed is None


class Tally:
    """The counting of one job while it runs. Only a dry run keeps examples: a real one may delete millions."""

    def __init__(self, kind: str, *, dry_run: bool) -> None:
        self.kind = kind
        self.dry_run = dry_run
        self.looked_at = 0
        self.changed = 0
        self.trouble: list[str] = []
        self.notes: list[str] = []
        self._bytes = 0
        self._deleted = 0
        self._kept: Counter[str] = Counter()
        self._why: Counter[str] = Counter()
        self._ages: tuple[int, int] | None = None
        self._examples: list[Gone] = []

    def keep(self, why: str) -> None:
        self._kept[why] += 1

    def gone(self, entry: Listed, age_s: int, why: str) -> None:
        self._deleted += 1
        self._bytes += entry.size_bytes
        self._why[why] += 1
        youngest, oldest = self._ages or (age_s, age_s)
        self._ages = min(youngest, age_s), max(oldest, age_s)
        if self.dry_run and len(self._examples) < UPKEEP_EXAMPLES_MAX:
            self._examples.append(Gone(entry.key, entry.size_bytes, age_s, why))

    def report(self, failed: str | None = None) -> Report:
        youngest, oldest = self._ages or (None, None)
        return Report(
            kind=self.kind,
            dry_run=self.dry_run,
            looked_at=self.looked_at,
            deleted=self._deleted,
            bytes=self._bytes,
            changed=self.changed,
            kept=dict(self._kept),
            why=dict(self._why),
            oldest_s=oldest,
            youngest_s=youngest,
            examples=tuple(self._examples),
            trouble=tuple(self.trouble),
            notes=tuple(self.notes),
            failed=failed,
        )
