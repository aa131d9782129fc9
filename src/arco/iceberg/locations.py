"""Locations compared as places: one folder inside another, whatever slash or `file:` spelling they are written with.

What must never enter: which locations a workspace allows, and any access to them.
"""

import re

# `file:/x`, `file:///x` and `/x` are one place; engines write all three.
_FILE = re.compile(r"\Afile:/{1,3}(?=[^/]|$)")
_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.\-]*:/*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def without_trailing_slash(location: str) -> str:
    """As Iceberg stores it; a bare scheme keeps its slashes."""
    stripped = location.rstrip("/")
    return location if not stripped or stripped.endswith(":") else stripped


def same_place(one: str, other: str) -> bool:
    return _comparable(one) == _comparable(other)


def inside(location: str, folder: str) -> bool:
    """Whether `location` is the folder or lies in it; a path that climbs lies nowhere."""
    inner, outer = _comparable(location), _comparable(folder)
    return inner == outer or (bool(outer) and inner.startswith(f"{outer}/") and not _winds(inner[len(outer) + 1 :]))


def is_winding(location: str) -> bool:
    """Whether a location has steps that some reader would resolve to another place: nobody can say where it lies."""
    return _winds(_SCHEME.sub("", location, count=1).strip("/"))


def _winds(path: str) -> bool:
    steps = path.lower().split("/")
    if _CONTROL.search(path):
        return True
    # `%2e%2e` climbs in whoever decodes it; an empty step vanishes in whoever tidies paths.
    return any(step.replace("%2e", ".") in {"", ".", ".."} or "%2f" in step or "\\" in step for step in steps)


def _comparable(location: str) -> str:
    place = location.rstrip("/")
    return _FILE.sub("/", place, count=1) if location.startswith("file:/") else place
