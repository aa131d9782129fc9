"""What the commit path needs to know about a table or a view, so that one path serves both.

A subject turns requests into metadata and metadata into bytes; it is pure. Everything that makes a commit safe (markers,
pointers, receipts, history) is the same for all and lives in `commits.py` and `relations.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from arco.catalog.model import Kind
from arco.catalog.pointer import Ref
from arco.iceberg import guardrails, requirements, table, updates, view_metadata, views
from arco.iceberg.changes import SetLocation, ViewUpdate
from arco.iceberg.guardrails import Allowed, Placed
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable, CommitView, CreateTable, CreateView
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.errors import CorruptObject

M = TypeVar("M")
R_contra = TypeVar("R_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a pointer and a receipt say of a metadata file. `at_ms` follows from the file alone."""

    at_ms: int
    snapshot_id: int | None
    last_sequence_number: int
    refs: dict[str, Ref]
    metadata_log: Sequence[Mapping[str, Any]] = ()

    @property
    def previous_locations(self) -> tuple[str, ...]:
        return tuple(str(entry.get("metadata-file")) for entry in self.metadata_log)


class Subject(Protocol[M, R_contra, C_contra]):
    """Metadata of one kind, with its commits and its creations."""

    @property
    def kind(self) -> Kind: ...

    def decode(self, data: bytes, location: str) -> M: ...

    def encode(self, metadata: M, location: str) -> bytes: ...

    def place(self, metadata: M) -> str:
        """The location that everything of it lies under."""
        ...

    def identity(self, metadata: M) -> str:
        """The uuid that the metadata itself says."""
        ...

    def metadata_file(self, metadata: M, name: str) -> str:
        """Where the metadata file of this name goes, and whether it is compressed, as the properties say."""
        ...

    def facts(self, metadata: M) -> Facts: ...

    def created(self, request: C_contra, uuid: str, location: str, now_ms: int, allowed: Allowed) -> M:
        """New metadata, or why not."""
        ...

    def committed(self, base: M, request: R_contra, now_ms: int, previous_location: str, allowed: Allowed) -> M:
        """The metadata after a commit: `base` itself if nothing changes. Raises why the commit does not apply."""
        ...


def adopted(subject: Subject[M, Any, Any], data: bytes, location: str, ours: M) -> M:
    """The metadata in a file that was there already: it stands for what we would have written, if it is the same table's."""
    found = subject.decode(data, location)
    if subject.identity(found) != subject.identity(ours):
        raise CorruptObject(f"{location} has the metadata of {subject.identity(found)}, not of {subject.identity(ours)}")
    return found


class Tables:
    """Iceberg tables."""

    kind = Kind.TABLE

    def decode(self, data: bytes, location: str) -> TableMetadata:
        return table.decode(data, location)

    def encode(self, metadata: TableMetadata, location: str) -> bytes:
        return table.encode(metadata, location)

    def place(self, metadata: TableMetadata) -> str:
        return metadata.location

    def identity(self, metadata: TableMetadata) -> str:
        return metadata.table_uuid

    def metadata_file(self, metadata: TableMetadata, name: str) -> str:
        return _metadata_file(metadata, name)

    def facts(self, metadata: TableMetadata) -> Facts:
        found = table.facts(metadata)
        refs = {name: Ref(ref.snapshot_id, ref.type) for name, ref in found.refs.items()}
        log: list[dict[str, Any]] = metadata.document.get("metadata-log", [])
        return Facts(found.last_updated_ms, found.current_snapshot_id, found.last_sequence_number, refs, log)

    def created(self, request: CreateTable, uuid: str, location: str, now_ms: int, allowed: Allowed) -> TableMetadata:
        guardrails.check_properties(request.properties)
        guardrails.check_codec(request.properties)
        metadata = table.new_table(request, table_uuid=uuid, location=location, now_ms=now_ms)
        guardrails.check_locations(metadata, own_location=location, allowed=allowed)
        return metadata

    def committed(
        self, base: TableMetadata, request: CommitTable, now_ms: int, previous_location: str, allowed: Allowed
    ) -> TableMetadata:
        return self.committed_in_turn(base, (request,), now_ms, previous_location, allowed)

    def committed_in_turn(
        self,
        base: TableMetadata,
        requests: Sequence[CommitTable],
        now_ms: int,
        previous_location: str | None,
        allowed: Allowed,
    ) -> TableMetadata:
        """Several changes as one version: each is checked against what the one before it came to."""
        after = base
        for request in requests:
            requirements.check(request.requirements, after)
            guardrails.check_updates(request.updates, own_location=base.location, allowed=allowed)
            log = previous_location if after is base else None
            after = updates.apply(after, request.updates, now_ms=now_ms, previous_location=log)
        guardrails.check_locations(after, own_location=base.location, allowed=allowed)
        return after


class Views:
    """Iceberg views. `proposed` are places that clients name and Arco does not take: a view stays where it is."""

    kind = Kind.VIEW

    def __init__(self, proposed: Allowed = guardrails.nowhere_else) -> None:
        self._proposed = proposed

    def decode(self, data: bytes, location: str) -> ViewMetadata:
        return view_metadata.decode_view(data, location)

    def encode(self, metadata: ViewMetadata, location: str) -> bytes:
        return view_metadata.encode_view(metadata, location)

    def place(self, metadata: ViewMetadata) -> str:
        return metadata.location

    def identity(self, metadata: ViewMetadata) -> str:
        return metadata.view_uuid

    def metadata_file(self, metadata: ViewMetadata, name: str) -> str:
        return _metadata_file(metadata, name)

    def facts(self, metadata: ViewMetadata) -> Facts:
        return Facts(int(metadata.current_version["timestamp-ms"]), None, 0, {})

    def created(self, request: CreateView, uuid: str, location: str, now_ms: int, allowed: Allowed) -> ViewMetadata:
        guardrails.check_properties(request.properties)
        guardrails.check_codec(request.properties)
        metadata = views.new_view(request, view_uuid=uuid, location=location, now_ms=now_ms)
        guardrails.check_locations(metadata, own_location=location, allowed=allowed)
        return metadata

    def committed(
        self, base: ViewMetadata, request: CommitView, now_ms: int, previous_location: str, allowed: Allowed
    ) -> ViewMetadata:
        requirements.check_view(request.requirements, base)
        wanted = tuple(one for one in request.updates if not self._is_proposal(one))
        guardrails.check_updates(wanted, own_location=base.location, allowed=allowed)
        after = views.apply_view(base, wanted, now_ms=now_ms)
        guardrails.check_locations(after, own_location=base.location, allowed=allowed)
        return after

    def _is_proposal(self, update: ViewUpdate) -> bool:
        """Trino sends a new one with every CREATE OR REPLACE VIEW."""
        return isinstance(update, SetLocation) and self._proposed(update.location)


def _metadata_file(metadata: Placed, name: str) -> str:
    """In the table's own place, unless a property says where; the guardrails have looked at that."""
    folder = metadata.properties.get(guardrails.METADATA_PATH) or f"{metadata.location.rstrip('/')}/metadata"
    is_gzip = metadata.properties.get(guardrails.METADATA_CODEC, "none").lower() == "gzip"
    return f"{folder.rstrip('/')}/{name.replace('.metadata.json', '.gz.metadata.json') if is_gzip else name}"
