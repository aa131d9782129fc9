"""How long what Arco knows is kept, by class: a policy, as data.

    hot       what people work with: pages, questions, `as_of`
    cold      kept as it is; of `snapshots`, still within the reach of `as_of`
    archive   the segments of the ledger alone are promised, for ever
    expired   nothing promises it any more

A class is a promise of what is kept, never a filter: readers show whatever the state has, because an answer follows from its
snapshot and not from the time of asking. Only `snapshots` takes anything away: beyond its cold days `as_of` answers 410, and
`upkeep` collects the files that only such moments had. The others are what `arco ledger stats` says of each day.

What must never enter: deleting, and the clock.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from arco.kernel.errors import InvalidInput

_DAY_MS = 86_400_000

# Versions of a partition: how long they are kept, at least and at most how many, and how long whatever their number. An asset may
# say other numbers.
PARTITION_VERSION_DAYS = 7
PARTITION_VERSIONS_MIN = 2
PARTITION_VERSIONS_MAX = 100
PARTITION_VERSION_GRACE_S = 24 * 3600

Days = Annotated[int, msgspec.Meta(ge=1, le=36_500)]


class Tier(StrEnum):
    """How something of some age is kept."""

    HOT = "hot"
    COLD = "cold"
    ARCHIVE = "archive"
    EXPIRED = "expired"


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hot until so many days old, cold until so many, then archived or not."""

    hot_days: Days
    cold_days: Days
    archive: bool = False

    def tier(self, age_ms: int) -> Tier:
        if age_ms < self.hot_days * _DAY_MS:
            return Tier.HOT
        if age_ms < self.cold_days * _DAY_MS:
            return Tier.COLD
        return Tier.ARCHIVE if self.archive else Tier.EXPIRED


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy of a workspace. `snapshots`: cold is as far as `as_of` reaches, and the one class that something goes by."""

    events: Keep = Keep(90, 365, archive=True)
    runs: Keep = Keep(90, 365)
    snapshots: Keep = Keep(7, 30)
    lineage: Keep = Keep(90, 365, archive=True)
    quality: Keep = Keep(90, 365, archive=True)
    audit: Keep = Keep(90, 7 * 365, archive=True)

    @classmethod
    def of(cls, document: Any) -> "Retention":
        """A policy as people write it; what is left out is as it is by default."""
        if not isinstance(document, dict):
            raise InvalidInput("retention is not a table", hint="write [retention.events] and hot_days = 90")
        known = msgspec.to_builtins(cls())
        given = {name: {**known.get(name, {}), **one} if isinstance(one, dict) else one for name, one in document.items()}
        try:
            found = msgspec.convert({**known, **given}, cls)
        except msgspec.ValidationError as error:
            said = str(error).replace("`", "").replace(" - at $.", " in retention.")
            raise InvalidInput(said, hint="hot_days, cold_days and archive, for each kind") from None
        for name in cls.__struct_fields__:
            keep: Keep = getattr(found, name)
            if keep.cold_days < keep.hot_days:
                raise InvalidInput(f"retention.{name} is cold before it is hot", hint="cold_days counts from the beginning")
        return found

    @property
    def reach_s(self) -> int:
        """How far back the state of a moment can be asked for."""
        return self.snapshots.cold_days * _DAY_MS // 1000

    def of_domain(self, domain: str) -> Keep:
        """How the segments of a domain of the ledger are kept."""
        return {"lineage": self.lineage, "quality": self.quality, "audit": self.audit}.get(domain, self.events)
