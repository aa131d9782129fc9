"""Files of tables, read by the driver: manifests, footers, deletes, and what an attempt wrote.

PyIceberg reads through a `FileIO`; this makes the one for a root, from the root's own options. Files are only read here, never
changed and never removed. What must never enter: Spark, which has its own way to the same files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from arco.catalog.locations import normal_uri
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip

_S3_OPTIONS = {
    "endpoint": "s3.endpoint",
    "region": "s3.region",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "anonymous": "s3.anonymous",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A file, its size, and when it was changed last."""

    location: str
    size_bytes: int
    modified_ns: int = 0


def file_io(options: Mapping[str, str] | None = None) -> FileIO:
    """Access to the files under a root with these options (the same words as for the root's store)."""
    given = options or {}
    properties = {theirs: given[ours] for ours, theirs in _S3_OPTIONS.items() if ours in given}
    if "endpoint" in given:
        # Without a region PyIceberg asks Amazon where the bucket lies, whatever the endpoint is.
        properties.setdefault("s3.region", "us-east-1")
    if "path_style" in given:
        properties["s3.force-virtual-addressing"] = str(given["path_style"].lower() not in {"true", "1", "yes"}).lower()
    return PyArrowFileIO(properties)


def files_below(io: FileIO, directory: str) -> list[Found]:
    """Every file below a directory, hidden ones left out; nothing if there is no such directory."""
    system, path = _system(io, directory)
    base = path.rstrip("/")
    entries = system.get_file_info(FileSelector(base, allow_not_found=True, recursive=True))
    found = []
    for entry in entries:
        below = entry.path.removeprefix(f"{base}/")
        if entry.type is FileType.File and not any(
            part.startswith((".", "_")) and "=" not in part for part in below.split("/")
        ):
            found.append(Found(f"{directory.rstrip('/')}/{below}", entry.size, entry.mtime_ns or 0))
    return sorted(found, key=lambda one: one.location)


def read_bytes(io: FileIO, location: str) -> bytes:
    try:
        with io.new_input(location).open() as stream:
            data: bytes = stream.read()
            return data
    except FileNotFoundError:
        raise NotFound(f"the file {clip(location, 300)} is gone", hint="it was removed by somebody else") from None


def plain_path(location: str) -> str:
    """One spelling of a location, for comparing what two programs call the same file."""
    return normal_uri(location)


def _system(io: FileIO, location: str) -> tuple[FileSystem, str]:
    if not isinstance(io, PyArrowFileIO):
        raise InvalidInput(f"files are listed through PyArrow, not {type(io).__name__}")
    scheme, netloc, path = io.parse_location(location, io.properties)
    if urlsplit(location).query or urlsplit(location).fragment:
        raise InvalidInput(f"location {clip(location)!r} has a ? or a #", hint="use a folder without")
    return io.fs_by_scheme(scheme, netloc), path
