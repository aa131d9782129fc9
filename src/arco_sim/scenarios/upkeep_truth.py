"""What really happened while collectors were at work: every swing that landed, and whether what was deleted could be reached.

It sees every write and every deletion at the moment of its effect, whoever asked for it and however long ago. What must never
enter: anything that asks the product for its opinion.
"""

import re
from typing import Any

from arco.catalog.names import Names
from arco.catalog.pointer import Pointer
from arco.kernel.ids import time_said
from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, MARKER_GRACE_S
from arco.kernel.scope import Scope
from arco.storage.keys import Head, HeadKey, prefix_of
from arco.storage.port import Condition, Landed, Outcome
from arco_sim import invariants
from arco_sim.audit import audit_of_names, is_decided, marker_in, pointer_in
from arco_sim.scenario import violate
from arco_sim.world import World

_TABLE = re.compile(r"/(?:data|views)/[a-z0-9_]+-([0-9a-f-]{36})/")
_METADATA = re.compile(r"/([0-9]{5,})-([0-9a-f]{20})[0-9a-f]{12}\.metadata\.json$")
BASE = "file:///lake/"


class Truth:
    """Put between the world and its objects, once, before the first actor starts."""

    def __init__(self, world: World, scope: Scope) -> None:
        self._world = world
        self._scope = scope
        self._manifest = str(HeadKey(scope, Head.CATALOG))
        self._pointers = prefix_of(scope, "_catalog", "iceberg_pointers")
        self._known: tuple[bytes, Names, set[str]] | None = None
        self.swings: dict[str, dict[int, str]] = {}
        self._strays: set[str] = set()
        """Files that clients wrote where there was no table any more: theirs, and nobody can tell that they are garbage."""
        self.receipts_gone: dict[str, bytes] = {}
        self._put, self._delete = world.apply_put, world.apply_delete
        world.apply_put, world.apply_delete = self._seen_put, self._seen_delete  # type: ignore[method-assign]

    def landings(self, file_name: str) -> set[str]:
        """The metadata files that a request's hash has in the histories of all tables."""
        wanted = _METADATA.search(f"/{file_name}")
        locations = {location for numbers in self.swings.values() for location in numbers.values()}
        return {one for one in locations if (found := _METADATA.search(one)) and wanted and found[2] == wanted[2]}

    def names(self) -> Names:
        """Who is named, by the chain of commits."""
        return self._state()[0]

    def pointer(self, uuid: str) -> Pointer | None:
        stored = self._world.stored(f"{self._pointers}{uuid}.json")
        return None if stored is None else pointer_in(stored.data)

    def _state(self) -> tuple[Names, set[str]]:
        stored = self._world.stored(self._manifest)
        data = b"" if stored is None else stored.data
        if self._known is None or self._known[0] != data:
            found = audit_of_names(self._world.everything(), self._scope)
            files = {file.key for file in (found.manifest.base, *found.manifest.deltas) if file is not None}
            chain = {f"{prefix_of(self._scope, '_catalog', 'core', 'commits')}{one.id}.json" for one in found.chain}
            self._known = (data, found.names, files | chain)
        return self._known[1], self._known[2]

    # What is seen

    def _seen_put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        before = self.pointer(self._uuid_of(key) or "") if "/iceberg_pointers/" in key else None
        outcome = self._put(key, data, condition)
        if isinstance(outcome, Landed) and "/iceberg_pointers/" in key:
            pointer = pointer_in(data)
            swings = self.swings.setdefault(pointer.table_uuid, {})
            swings[pointer.commit_number] = pointer.metadata_location
            swings.update({one.commit_number: one.metadata_location for one in pointer.published})
            if before is not None and before.pending is not None and self._is_decided(before):
                # Whoever wrote over a change that was decided went on from there, perhaps by two commits in one swing.
                swings[before.pending.change.commit_number] = before.pending.change.metadata_location
        if isinstance(outcome, Landed) and key.endswith(".parquet") and self._is_nobodys(self._uuid_of(key) or ""):
            self._strays.add(key)
        return outcome

    def _is_nobodys(self, uuid: str) -> bool:
        """Whether there is neither a table nor a staged one of this identity."""
        folder = prefix_of(self._scope, "_catalog", "iceberg_staged")
        return self.pointer(uuid) is None and self._world.stored(f"{folder}{uuid}.json") is None

    def _seen_delete(self, key: str) -> None:
        stored = self._world.stored(key)
        if stored is not None:
            if "/committed/" in key:
                self.receipts_gone[key] = stored.data
            why = self._needed(key)
            if why is not None:
                violate(self._world, invariants.NOTHING_NEEDED_DELETED, f"{key} was deleted: {why}")
        self._delete(key)

    def _needed(self, key: str) -> str | None:
        """Why somebody can still reach an object, if somebody can."""
        names, named = self._state()
        if key in named:
            return "the manifest of the names, or its chain, names it"
        uuid = self._uuid_of(key)
        if "/iceberg_transactions/" in key:
            return self._needed_by_a_pointer(key)
        if uuid is None:
            return self._needed_by_age(key)
        if uuid not in names.places and uuid not in names.dropped:
            return None
        if "/iceberg_pointers/" in key:
            return "it is the pointer of a table"
        found = _METADATA.search(key)
        if found is None:
            return "it is a file of a table"
        pointer = self.pointer(uuid)
        if (
            pointer is not None
            and pointer.pending is not None
            and pointer.pending.change.metadata_location == f"{BASE}{key}"
        ):
            return "it is what a transaction made of a table, or may"
        if f"{BASE}{key}" in self.swings.get(uuid, {}).values():
            return "it is in the history of a table"
        if pointer is None or int(found[1]) > self._counting_number(pointer):
            return "a commit may still swing to it"
        return None

    def _uuid_of(self, key: str) -> str | None:
        if "/iceberg_pointers/" in key:
            return key.rpartition("/")[2].removesuffix(".json")
        found = _TABLE.search(key)
        return None if found is None else found[1]

    def _needed_by_a_pointer(self, record: str) -> str | None:
        """A decision that a pointer still waits for: without its record the table is what it was before."""
        for key, data in self._world.everything().items():
            pointer = pointer_in(data) if key.startswith(self._pointers) else None
            waits = pointer is not None and pointer.pending is not None and pointer.pending.record == record
            if pointer is not None and waits and self._is_decided(pointer):
                return f"the pointer of {pointer.table_uuid} still names it"
        return None

    def _is_decided(self, pointer: Pointer) -> bool:
        record = None if pointer.pending is None else self._world.stored(pointer.pending.record)
        return record is not None and is_decided({record.info.key: record.data}, pointer)

    def _counting_number(self, pointer: Pointer) -> int:
        """The number of the last commit that counts: that of a change which was decided and is still pending."""
        if pointer.pending is not None and self._is_decided(pointer):
            return pointer.pending.change.commit_number
        return pointer.commit_number

    def _needed_by_age(self, key: str) -> str | None:
        stored = self._world.stored(key)
        if stored is None:
            return None
        made_ms = stored.info.modified_ms
        if "/iceberg_idempotency/" in key:
            # An attempt that slept for days may finish its marker now, and no retry is let in any more: its key says its age.
            said_ms = time_said(marker_in(stored.data).key)
            made_ms = made_ms if said_ms is None else min(made_ms, said_ms)
        elif "/committed/" not in key:
            return None
        is_kept = self._world.store_time_ms() - made_ms <= (IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S) * 1000
        return "a retry may ask for it" if is_kept else None

    # What is left

    def litter(self) -> list[str]:
        """Objects that nobody can reach and nobody will, long after the last actor is done."""
        names, named = self._state()
        return [text for key in sorted(self._world.everything()) if (text := self._litter(key, names, named))]

    def _litter(self, key: str, names: Names, named: set[str]) -> str:
        if "/core/" in key and key not in named:
            return f"{key} is named by no manifest"
        if any(
            part in key for part in ("/iceberg_idempotency/", "/pending/", "/iceberg_staged/", "/iceberg_transactions/")
        ):
            return f"{key} is long past its time"
        uuid = self._uuid_of(key)
        if key in self._strays:
            return ""
        if uuid is None or uuid in names.places:
            return self._orphan(key, uuid)
        if uuid in names.dropped:
            return ""  # whoever registered it elsewhere may have written anything there
        pointer = self.pointer(uuid)
        if "/iceberg_pointers/" in key and pointer is not None and pointer.tombstone is not None:
            return ""
        return f"{key} belongs to no table"

    def _orphan(self, key: str, uuid: str | None) -> str:
        found, pointer = _METADATA.search(key), None if uuid is None else self.pointer(uuid)
        if found is None or uuid is None or pointer is None or pointer.created_by == "registered":
            return ""
        history: Any = self.swings.get(uuid, {})
        if int(found[1]) <= pointer.commit_number and f"{BASE}{key}" not in history.values():
            return f"{key} is of a commit that never happened"
        return ""
