"""The files that `files(...)` means at this moment, and a fingerprint that changes when one of them does.

A pattern has * and ** between slashes. One without a scheme is looked for below the project's folder; a folder means everything
below it. Names that begin with . or _ are no data, as Spark has it. The fingerprint is of names, sizes and times of change: files
are not opened. What must never enter: reading them.
"""

import glob
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import INPUT_FILES_MAX
from arco.servo.plan.facts import FilesFact

_WILD = re.compile(r"[*?\[]")
_Listed = tuple[str, str, int, int]
"""The name that counts, the place to read from, size and time of change."""


def list_files(pattern: str, folder: Path, options: Mapping[str, str] | None = None) -> FilesFact:
    """The files of a pattern. A pattern that means nothing is a fact too: no files."""
    found = (
        _remote(pattern, options or {})
        if "://" in pattern and not pattern.startswith("file://")
        else _local(pattern, folder)
    )
    if len(found) > INPUT_FILES_MAX:
        raise TooLarge(
            f"files({clip(pattern)!r}) means {len(found)} files", hint=f"at most {INPUT_FILES_MAX}; narrow the pattern"
        )
    found.sort()
    return FilesFact(
        fingerprint=fingerprint("files", *(f"{name}\0{size}\0{modified}" for name, _, size, modified in found))[:32],
        files=tuple(place for _, place, _, _ in found),
        bytes=sum(size for _, _, size, _ in found),
    )


def _local(pattern: str, folder: Path) -> list[_Listed]:
    written = pattern.removeprefix("file://")
    found: dict[str, _Listed] = {}
    for match in glob.iglob(written, root_dir=folder, recursive=True):  # noqa: PTH207 - Path.glob takes no absolute pattern
        place = folder / match
        inside = [one for one in place.rglob("*") if not _is_hidden(one.relative_to(place))] if place.is_dir() else [place]
        for one in inside:
            if one.is_file() and not _is_hidden(Path(one.name)):
                stat = one.stat()
                name = one.relative_to(folder).as_posix() if one.is_relative_to(folder) else one.as_posix()
                found[name] = (name, one.resolve().as_posix(), stat.st_size, stat.st_mtime_ns)
    return list(found.values())


def _is_hidden(name: Path) -> bool:
    return any(part.startswith((".", "_")) and "=" not in part for part in name.parts)


def _remote(pattern: str, options: Mapping[str, str]) -> list[_Listed]:
    # PyArrow and PyIceberg take long to load, and most projects read no files of a bucket.
    from arco.servo.execute.file_access import file_io, files_below  # noqa: PLC0415

    scheme, _, path = pattern.partition("://")
    parts = path.split("/")
    fixed = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
    if not parts[0] or fixed == 0:
        raise InvalidInput(f"files({clip(pattern)!r}) names no bucket", hint=f"write {scheme}://bucket/folder/*.json")
    wild = fixed < len(parts)
    base = f"{scheme}://{'/'.join(parts[:fixed] if wild else parts)}".rstrip("/")
    listed = []
    for one in files_below(file_io(options), base):
        below = one.location.removeprefix(f"{base}/").split("/")
        if not wild or _matches(parts[fixed:], below):
            listed.append((one.location, one.location, one.size_bytes, one.modified_ns))
    return listed


def _matches(pattern: Sequence[str], name: Sequence[str]) -> bool:
    """Whether a name is one of a pattern, part by part: ** stands for any number of folders."""
    if not pattern:
        return not name
    if pattern[0] == "**":
        return any(_matches(pattern[1:], name[passed:]) for passed in range(len(name) + 1))
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _matches(pattern[1:], name[1:])
