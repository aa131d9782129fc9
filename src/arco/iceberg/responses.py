"""The bodies of answers that carry metadata: load table, commit table, load view.

What must never enter: credentials' values beyond passing them through, and anything about HTTP.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.iceberg.view_metadata import ViewMetadata


class Snapshots(StrEnum):
    """Which snapshots a load asks for."""

    ALL = "all"
    REFS = "refs"


def load_table(
    metadata: TableMetadata,
    *,
    metadata_location: str | None,
    config: Mapping[str, str],
    snapshots: Snapshots = Snapshots.ALL,
    credentials: Sequence[JsonObject] = (),
) -> JsonObject:
    """LoadTableResult. A staged table has no metadata location, and the field is absent then."""
    return _result(shown(metadata, snapshots), metadata_location, config, credentials)


def commit_table(metadata: TableMetadata, *, metadata_location: str, spelled: bytes | None = None) -> JsonObject:
    """CommitTableResponse. `spelled` is the document as JSON, for who has it: large ones take long to spell."""
    document = metadata.document if spelled is None else msgspec.Raw(spelled)
    return {"metadata-location": metadata_location, "metadata": document}


def load_view(metadata: ViewMetadata, *, metadata_location: str, config: Mapping[str, str]) -> JsonObject:
    """LoadViewResult."""
    return _result(metadata.document, metadata_location, config, ())


def shown(metadata: TableMetadata, snapshots: Snapshots) -> JsonObject:
    """The document as a load shows it; the logs stay whole, so that clients can tell that there is more."""
    if snapshots is Snapshots.ALL:
        return metadata.document
    referenced = {ref["snapshot-id"] for ref in metadata.refs.values()}
    kept = [snapshot for snapshot in metadata.snapshots if snapshot["snapshot-id"] in referenced]
    return {**metadata.document, "snapshots": kept}


def _result(
    metadata: JsonObject,
    metadata_location: str | None,
    config: Mapping[str, str],
    credentials: Sequence[JsonObject],
) -> JsonObject:
    body: JsonObject = {} if metadata_location is None else {"metadata-location": metadata_location}
    body["metadata"] = metadata
    body["config"] = dict(config)
    if credentials:
        body["storage-credentials"] = list(credentials)
    return body
