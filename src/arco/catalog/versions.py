"""Versions of a table or view: the one that a commit is computed on, the one that it makes, and what became of it.

In a group a commit is computed on the version of the one before it, which has not landed yet; both land in one swing.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from arco.catalog.bases import Base

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Version(Generic[M]):
    """Metadata with the number and the file of its commit."""

    number: int
    location: str
    metadata: M


@dataclass(frozen=True, slots=True)
class Prepared(Generic[M]):
    """A commit that is computed and not yet written. `before` is the version of its base; in a group, of the one before it."""

    base: Base[M]
    before: Version[M]
    after: Version[M]
    event_id: str

    @property
    def metadata(self) -> M:
        return self.after.metadata

    @property
    def location(self) -> str:
        return self.after.location

    @property
    def changes_nothing(self) -> bool:
        return self.after.metadata is self.before.metadata


@dataclass(frozen=True, slots=True)
class Committed(Generic[M]):
    """What is current after a commit. `spelled` is the metadata as JSON, where this request has written exactly that."""

    metadata: M
    location: str
    spelled: bytes | None = None


def version_of(base: Base[M]) -> Version[M]:
    return Version(base.pointer.value.commit_number, base.location, base.metadata)
