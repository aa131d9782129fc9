"""The head of tier 1: one compare-and-swap object that says which commits count.

A commit is an immutable object, hash-chained to the one before it: its hash covers the whole commit, its predecessor's hash
included (hazard 20). The manifest names the last one, holds the commits since the last checkpoint inline (the tail), and the
Parquet files that hold everything before. Swinging it is the only way anything of tier 1 becomes visible. Its size is bounded
by the length of the tail and of the list of deltas, so the cost of a commit does not grow with the number of names.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from arco.catalog.operations import Operation
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint

_FORMAT_VERSION = 1


class Author(msgspec.Struct, frozen=True):
    """Who asks, for the record."""

    principal: str = "anonymous"
    client_id: str | None = None


SEVERAL = Author("several")
"""Stands for the authors of a group."""


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some operations, by whom and when. `sequence` counts commits from 1. `authors` has one for each, if they differ."""

    id: str
    sequence: int
    previous_id: str | None
    previous_hash: str | None
    at_ms: int
    author: str
    client_id: str | None
    operations: tuple[Operation, ...]
    authors: tuple[Author, ...] = ()

    def asked(self) -> Iterator[tuple[Operation, Author]]:
        """Each operation with who asked for it. Groups of before say `several` for all of theirs."""
        alone = Author(self.author, self.client_id)
        return zip(self.operations, self.authors or (alone,) * len(self.operations), strict=True)

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    def hash(self) -> str:
        """Covers every field, the predecessor's hash among them."""
        return fingerprint("catalog commit", self.encode())


class StateFile(msgspec.Struct, frozen=True):
    """One Parquet file of state, with what it holds and how to know it is whole."""

    key: str
    rows: int
    size_bytes: int
    checksum: str
    up_to_sequence: int
    written_ms: int


class Manifest(msgspec.Struct, frozen=True):
    """What counts. `tail` are the commits after `checkpointed_sequence`; `boundary_ms` refuses creations minted before it."""

    sequence: int = 0
    last_commit_id: str | None = None
    last_commit_hash: str | None = None
    last_commit_ms: int = 0
    checkpointed_sequence: int = 0
    base: StateFile | None = None
    deltas: tuple[StateFile, ...] = ()
    tail: tuple[Commit, ...] = ()
    boundary_ms: int = 0

    def following(self, commit: Commit) -> "Manifest":
        """The manifest with one more commit."""
        return msgspec.structs.replace(
            self,
            sequence=commit.sequence,
            last_commit_id=commit.id,
            last_commit_hash=commit.hash(),
            last_commit_ms=commit.at_ms,
            tail=(*self.tail, commit),
        )


class ManifestCodec:
    """Remembers how it spelled the commits of a tail: of the manifest after it, all but the last are the same values."""

    format = "arco.catalog_manifest"

    def __init__(self) -> None:
        self._spelled: dict[int, tuple[Commit, bytes]] = {}

    def encode(self, value: Manifest) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(value, tail=()))
        fields["tail"] = [msgspec.Raw(one) for one in self._spelled_tail(value.tail)]
        return _FORMAT_VERSION, fields

    def tail_bytes(self, tail: tuple[Commit, ...]) -> int:
        """How much of a manifest its tail takes."""
        return sum(map(len, self._spelled_tail(tail))) + len(tail) + 1

    def _spelled_tail(self, tail: tuple[Commit, ...]) -> list[bytes]:
        """By the commits' identity: each is held beside its bytes, so that no other can have it."""
        spelled = {id(one): self._spelled.get(id(one)) or (one, _spelled(one)) for one in tail}
        self._spelled = spelled
        return [data for _, data in spelled.values()]

    def decode(self, format_version: int, fields: dict[str, Any]) -> Manifest:
        if format_version != _FORMAT_VERSION:
            raise UnknownFormat(f"the catalog manifest has format version {format_version}")
        try:
            return msgspec.convert(fields, Manifest)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"the catalog manifest has wrong fields: {error}") from error


def _spelled(commit: Commit) -> bytes:
    """As a compare-and-swap object spells what is in it."""
    return msgspec.json.encode(msgspec.to_builtins(commit), order="sorted")


def decode_commit(data: bytes, key: str) -> Commit:
    try:
        return msgspec.json.decode(data, type=Commit)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a commit: {error}") from error
