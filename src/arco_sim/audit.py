"""What really happened to a catalog, read from its objects alone.

The product says what is; an audit says what was: every commit of every table from receipts and pointers, every commit of
tier 1 from its chain. What must never enter: anything that asks the product for its opinion.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import msgspec

from arco.catalog.idempotency import Marker
from arco.catalog.manifest import Commit, Manifest, decode_commit
from arco.catalog.names import Draft, Names
from arco.catalog.operations import Operation, Void
from arco.catalog.pointer import Pointer
from arco.kernel.ids import CommitId
from arco.kernel.scope import Scope
from arco.ledger.receipts import Receipt
from arco.storage.keys import CatalogCommitKey, Head, HeadKey, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore

_FILE = re.compile(
    r"/[0-9]{5,}-([0-9a-f]{20})[0-9a-f]{12}\.metadata\.json$"
)  # the request; its table, and what it stands behind
_REMEMBERED_MAX = 4096
"""Bytes that were decoded before, of each kind: objects are looked at again and again, and what they say is frozen."""
T = TypeVar("T")


@dataclass(slots=True)
class Audit:
    """One workspace at rest. `gaps` are commits below a head that left no receipt, `breaks` what is wrong with the chain."""

    objects: dict[str, bytes]
    manifest: Manifest
    pointers: dict[str, Pointer] = field(default_factory=dict)
    commits: dict[str, dict[int, str]] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    chain: list[Commit] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    gaps: list[str] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)

    def landings(self, file_name: str) -> list[tuple[str, int]]:
        """Where a request landed: table and commit number, by the hash in the name of the files it would write.

        A table may be registered at a file that it had before: that is the same landing.
        """
        wanted = _FILE.search(f"/{file_name}")
        if wanted is None:
            raise ValueError(f"{file_name} is not the name of a metadata file")
        found: dict[str, tuple[str, int]] = {}
        for uuid, locations in self.commits.items():
            for number, location in sorted(locations.items()):
                name = _FILE.search(location)
                if name is not None and name[1] == wanted[1]:
                    found.setdefault(location, (uuid, number))
        return list(found.values())

    def operations(self, key_hash: str) -> list[Operation]:
        """What was done to the names under a key. The word that it was refused is not among it."""
        done = (operation for commit in self.chain for operation in commit.operations)
        return [one for one in done if one.key_hash == key_hash and not isinstance(one, Void)]


async def audit(store: ObjectStore, scope: Scope) -> Audit:
    """Read everything there is."""
    objects: dict[str, bytes] = {}
    async for entry in walk(store, prefix_of(scope)):
        found = await store.get(entry.key)
        if found is not None:
            objects[entry.key] = found.data
    return audit_of(objects, scope)


def audit_of(objects: dict[str, bytes], scope: Scope) -> Audit:
    """The same from objects that somebody else has read."""
    result = audit_of_names(objects, scope)
    _read_tables(result, scope)
    return result


def audit_of_names(objects: dict[str, bytes], scope: Scope) -> Audit:
    """The chain and what it names, and nothing of the tables."""
    head = objects.get(str(HeadKey(scope, Head.CATALOG)))
    result = Audit(objects, Manifest() if head is None else _plain(head, Manifest))
    _read_chain(result, scope)
    return result


def pointer_in(data: bytes) -> Pointer:
    """A pointer, from the bytes of its object."""
    pointer: Pointer = _plain(data, Pointer)
    return pointer


def marker_in(data: bytes) -> Marker:
    """A marker, from the bytes of its object."""
    marker: Marker = _plain(data, Marker)
    return marker


@lru_cache(_REMEMBERED_MAX)
def _plain(data: bytes, kind: type[T]) -> T:
    return msgspec.convert(msgspec.json.decode(data), kind)


@lru_cache(_REMEMBERED_MAX)
def _receipt(data: bytes) -> Receipt:
    return msgspec.json.decode(data, type=Receipt)


@lru_cache(_REMEMBERED_MAX)
def _commit(data: bytes, key: str) -> tuple[Commit, str]:
    """A commit, and the hash of what it says."""
    commit = decode_commit(data, key)
    return commit, commit.hash()


def _read_tables(result: Audit, scope: Scope) -> None:
    pointers, receipts = prefix_of(scope, "_catalog", "iceberg_pointers"), prefix_of(scope, "_catalog", "events")
    for key, data in result.objects.items():
        if key.startswith(pointers):
            pointer = pointer_in(data)
            result.pointers[pointer.table_uuid] = pointer
            commits = result.commits.setdefault(pointer.table_uuid, {})
            commits[pointer.commit_number] = pointer.metadata_location
            commits.update({one.commit_number: one.metadata_location for one in pointer.published})
            if pointer.pending is not None and is_decided(result.objects, pointer):
                commits[pointer.pending.change.commit_number] = pointer.pending.change.metadata_location
        elif key.startswith(receipts) and "/committed/" in key:
            receipt = result.receipts[key] = _receipt(data)
            commits = result.commits.setdefault(receipt.table_uuid, {})
            number, location = receipt.commit.commit_number, receipt.commit.metadata_location
            if commits.setdefault(number, location) != location:
                result.gaps.append(f"commit {number} of {receipt.table_uuid} is both {commits[number]} and {location}")
    for uuid, pointer in result.pointers.items():
        missing = [number for number in range(pointer.commit_number) if number not in result.commits[uuid]]
        if missing:
            result.gaps.append(f"commits {missing} below {pointer.commit_number} of {uuid} have no receipt")


def is_decided(objects: Mapping[str, bytes], pointer: Pointer) -> bool:
    """Whether the record that a pointer names was committed with exactly what the pointer holds."""
    pending = pointer.pending
    if pending is None or pending.record not in objects:
        return False
    record = msgspec.json.decode(objects[pending.record])
    wanted = (pointer.table_uuid, pending.change.metadata_location, pending.attempt)
    parts = [(one["table_uuid"], one["metadata_location"], one["attempt"]) for one in record["parts"]]
    return record["status"] == "committed" and wanted in parts


def _read_chain(result: Audit, scope: Scope) -> None:
    """From the manifest's last commit back to the first, every hash compared; then forward, to the names they add up to."""
    manifest, newest_first = result.manifest, list[Commit]()
    place, expected, number = manifest.last_commit_id, manifest.last_commit_hash, manifest.sequence
    while place is not None:
        key = str(CatalogCommitKey(scope, CommitId(place)))
        if key not in result.objects:
            result.breaks.append(f"commit {number} is missing: {key}")
            break
        commit, its_hash = _commit(result.objects[key], key)
        if (its_hash, commit.sequence) != (expected, number):
            result.breaks.append(f"commit {number} is not the one that the chain names")
        newest_first.append(commit)
        place, expected, number = commit.previous_id, commit.previous_hash, number - 1
    if place is None and number:
        result.breaks.append(f"the chain ends {number} commits before its beginning")
    result.chain = newest_first[::-1]
    for earlier, later in zip(result.chain, result.chain[1:], strict=False):
        if later.at_ms < earlier.at_ms:
            result.breaks.append(f"commit {later.sequence} is older than the one before it")
    _replay(result)


def _replay(result: Audit) -> None:
    for commit in result.chain:
        draft = Draft(result.names)
        for operation in commit.operations:
            draft.apply(operation, commit.at_ms)
        draft.merge()
