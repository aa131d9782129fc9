"""What a client may not do to metadata although the format allows it: Arco's own properties, and places outside the table.

Locations are judged by the result of a request, never by what it changed: a request that removes one setting can give
effect to another that has been waiting. What must never enter: which places a workspace allows; that is a question put to
the caller's predicate.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from arco.iceberg.changes import RemoveProperties, SetLocation, SetProperties, TableUpdate, ViewUpdate
from arco.iceberg.locations import inside, is_winding, same_place
from arco.iceberg.shape import listed
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import KEY_SEGMENT_BYTES_MAX

RESERVED_PREFIX = "arco."

METADATA_PATH = "write.metadata.path"
"""The one of them that Arco itself writes to."""

METADATA_CODEC = "write.metadata.compression-codec"
METADATA_CODECS = ("none", "gzip")

# Where engines put files when these are set; the older two still have effect.
LOCATION_PROPERTIES = (
    "write.data.path",
    METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)


class Placed(Protocol):
    """Metadata of a table or a view."""

    @property
    def location(self) -> str: ...

    @property
    def properties(self) -> dict[str, str]: ...


Allowed = Callable[[str], bool]


def nowhere_else(_: str) -> bool:
    """The managed policy: nothing but the table's own place."""
    return False


def is_reserved(key: str) -> bool:
    return key.casefold().startswith(RESERVED_PREFIX)


def check_properties(keys: Iterable[str]) -> None:
    """For what names properties by itself, tables, views and namespaces: all offenders in one refusal."""
    offenders = [key for key in keys if is_reserved(key)]
    if offenders:
        raise InvalidInput(
            f"reserved properties: {listed(offenders)}", hint=f"{RESERVED_PREFIX}* belongs to Arco, in any letter case"
        )


def check_codec(properties: Mapping[str, str]) -> None:
    """For properties that are set: metadata files are written in these ways and no other. A table that has another already
    has its files written plain, and can be used."""
    codec = properties.get(METADATA_CODEC, METADATA_CODECS[0])
    if codec.lower() not in METADATA_CODECS:
        raise InvalidInput(
            f"{METADATA_CODEC}: {clip(codec)!r} is not supported", hint=f"use {' or '.join(METADATA_CODECS)}"
        )


def check_updates(
    updates: Iterable[TableUpdate] | Iterable[ViewUpdate], *, own_location: str | None, allowed: Allowed = nowhere_else
) -> None:
    """For commits, before they are applied: reserved keys set or removed, and moves. No own location yet: a new table."""
    keys: list[str] = []
    for update in updates:
        if isinstance(update, SetProperties):
            keys.extend(update.updates)
            check_codec(update.updates)
        elif isinstance(update, RemoveProperties):
            keys.extend(update.removals)
        elif isinstance(update, SetLocation):
            _check_move(update.location, own_location, allowed)
    check_properties(keys)


def effective_locations(metadata: Placed) -> tuple[tuple[str, str], ...]:
    """Every place that engines write to for this table or view, each with the name of what says so."""
    set_by_property = ((key, metadata.properties[key]) for key in LOCATION_PROPERTIES if key in metadata.properties)
    return (("location", metadata.location), *set_by_property)


def check_locations(metadata: Placed, *, own_location: str, allowed: Allowed = nowhere_else) -> None:
    """For results, after the updates: every effective place lies in the table's own place or in an allowed one."""
    elsewhere = [one for one in effective_locations(metadata) if not inside(one[1], own_location)]
    may_move = bool(elsewhere) and not is_winding(metadata.location) and allowed(metadata.location)
    outside = [
        f"{key}={clip(place)}"
        for key, place in elsewhere
        if not (may_move and inside(place, metadata.location)) and (is_winding(place) or not allowed(place))
    ]
    files = metadata.properties.get(METADATA_PATH, "")
    if any(len(step.encode(errors="replace")) > KEY_SEGMENT_BYTES_MAX for step in files.split("/")):
        raise InvalidInput(
            f"{METADATA_PATH}: a step of {clip(files)} is longer than {KEY_SEGMENT_BYTES_MAX} bytes",
            hint="name a shorter folder",
        )
    if outside:
        raise InvalidInput(
            f"locations outside of the table: {listed(outside)}",
            hint="ask for the place to be listed in the location policy",
        )


def _check_move(location: str, own_location: str | None, allowed: Allowed) -> None:
    if own_location is not None and same_place(location, own_location):
        return
    if is_winding(location) or not allowed(location):
        raise InvalidInput(
            f"set-location: {clip(location)} is not the table's own location", hint="Arco places tables itself"
        )
