"""Places that may be handed out: the only way to a `ValidatedPlace`.

The failure this prevents, in order (CVE-2026-42809, and its neighbours of the same year):
  1. a client asks for a table at a location of its own choice
  2. the catalog makes credentials for it, and checks the location after that, or only if a request changed it
  3. the client holds keys to another table's files, or to the whole bucket
So order is a type. Whoever vends takes a `ValidatedPlace`, and only `Validation` makes one, from the metadata as it is now: every
place that engines would write to lies in the folder that Arco gave this very table, by the table's own identity. A place
that is merely allowed to be registered is not enough: a metadata file says itself where its table lies, and may lie.

What must never enter: a way to make a place out of text, and a check that looks at what a request changed.
"""

from dataclasses import InitVar, dataclass
from typing import final

from arco.catalog.locations import Locations, normal_uri
from arco.iceberg.guardrails import Placed, effective_locations
from arco.iceberg.locations import is_winding
from arco.kernel.errors import AccessDenied, BrokenInvariant, InvalidInput
from arco.kernel.ids import TableUuid, clip
from arco.kernel.scope import Scope
from arco.storage.keys import Slug, table_folder, tables_folder
from arco.storage.port import objection
from arco.storage.roots import Root

_PROOF = object()


@final
@dataclass(frozen=True, slots=True)
class ValidatedPlace:
    """The folder of one table: as clients spell it, and as its store does. `path` has no slash at its ends."""

    uri: str
    bucket: str
    path: str
    proof: InitVar[object]

    def __post_init__(self, proof: object) -> None:
        if proof is not _PROOF:
            raise BrokenInvariant("a place that nobody validated was to be handed out")


class Validation:
    """The places of one root. `base` is what the URIs of the root's files begin with."""

    def __init__(self, root: Root, base: str) -> None:
        self._root = root
        self._locations = Locations(base)

    def table(self, scope: Scope, uuid: str, metadata: Placed) -> ValidatedPlace:
        """The place of a table, if everything that belongs to it lies there; AccessDenied with what does not."""
        own = self._own_folder(scope, uuid, metadata.location)
        for setting, place in effective_locations(metadata):
            key = self._key(setting, place)
            if key != own and not key.startswith(f"{own}/"):
                raise _denied(setting, place)
        path = f"{self._root.path}/{own}".strip("/")
        return ValidatedPlace(self._locations.uri(own), self._root.bucket, path, _PROOF)

    def within(self, place: ValidatedPlace, uri: str) -> ValidatedPlace:
        """A folder inside a place that was validated: less than it."""
        key = self._key("folder", uri)
        path = f"{self._root.path}/{key}".strip("/")
        if not path.startswith(f"{place.path}/"):
            raise _denied("folder", uri)
        return ValidatedPlace(self._locations.uri(key), self._root.bucket, path, _PROOF)

    def beside_the_root(self, uri: str) -> ValidatedPlace:
        """A folder of the root's bucket that is none of the root's: of files that others put there."""
        plain, bucket = uri.rstrip("/"), f"{self._root.kind}://{self._root.bucket}/"
        path = normal_uri(plain).removeprefix(bucket)
        root = self._root.path
        if is_winding(plain) or not normal_uri(plain).startswith(bucket) or not path or objection(path) is not None:
            raise _denied("folder", uri)
        if not root or f"{path}/".startswith(f"{root}/") or root.startswith(f"{path}/"):
            raise AccessDenied(
                f"no credentials for files in {clip(uri)}: it is in the root, where tables and the catalog lie",
                hint="put files that are read beside the root",
            )
        return ValidatedPlace(f"{bucket}{path}", self._root.bucket, path, _PROOF)

    def _own_folder(self, scope: Scope, uuid: str, location: str) -> str:
        """The key of the folder that was made for this table. Its slug says nothing; its identity does."""
        key = self._key("location", location)
        slug = key.removeprefix(tables_folder(scope)).removesuffix(f"-{uuid}")
        try:
            made = table_folder(scope, Slug(slug), TableUuid(uuid)).rstrip("/")
        except InvalidInput:
            raise _denied("location", location) from None
        if key != made:
            raise _denied("location", location)
        return key

    def _key(self, setting: str, place: str) -> str:
        try:
            key = None if is_winding(place) else self._locations.key(place.rstrip("/"))
        except InvalidInput:
            key = None
        if key is None:
            raise _denied(setting, place)
        return key


def _denied(setting: str, place: str) -> AccessDenied:
    return AccessDenied(
        f"no credentials for {setting}={clip(place)}: it is not the folder that was made for this table",
        hint="tables that were registered elsewhere need storage settings of the client's own",
    )
