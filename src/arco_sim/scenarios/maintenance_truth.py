"""What really is in reach of a table's readers and writers, at the moment of every deletion: by swings that landed, not by logs.

A version is in reach while it is current, for a day after it was superseded, and while its swing may still land. What must never
enter: anything that asks upkeep for its opinion.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from arco.catalog.subject import Tables
from arco.iceberg.manifest_files import live_files_in, manifests_in
from arco.iceberg.metadata import TableMetadata
from arco.kernel.limits import UPKEEP_GRACE_S
from arco.storage.port import Condition, Landed, Outcome
from arco_sim import invariants
from arco_sim.audit import pointer_in
from arco_sim.scenario import violate
from arco_sim.scenarios.upkeep_truth import BASE
from arco_sim.world import World

_METADATA = re.compile(r"/([0-9]{5,})-[0-9a-f]{32}\.metadata\.json$")


class TableTruth:
    """Put between the world and its objects, once, before the first actor starts. It knows one table."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.swings: list[tuple[int, str, int]] = []
        """Every version that became current: its number, its file, and when."""
        self._names: dict[str, frozenset[str]] = {}
        self._put, self._delete = world.apply_put, world.apply_delete
        world.apply_put, world.apply_delete = self._seen_put, self._seen_delete  # type: ignore[method-assign]

    def current(self) -> TableMetadata:
        return self._version(self.swings[-1][1])

    def missing(self) -> list[str]:
        """What the current version names and is not there."""
        stored = self._world.everything()
        return sorted(key for key in self._named_by(self.swings[-1][1].removeprefix(BASE)) if key not in stored)

    def litter(self) -> list[str]:
        """Files of the table that nothing names, and metadata files that the table no longer wants."""
        named = self._named_by(self.swings[-1][1].removeprefix(BASE))
        wanted = {str(one["metadata-file"]).removeprefix(BASE) for one in self.current().document["metadata-log"]}
        files = [key for key in self._world.everything() if "/data/t-" in key]
        return sorted(key for key in files if key not in named and key not in wanted)

    # What is seen

    def _seen_put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        outcome = self._put(key, data, condition)
        if isinstance(outcome, Landed) and "/iceberg_pointers/" in key:
            pointer = pointer_in(data)
            if not self.swings or self.swings[-1][0] < pointer.commit_number:
                self.swings.append((pointer.commit_number, pointer.metadata_location, self._world.store_time_ms()))
        return outcome

    def _seen_delete(self, key: str) -> None:
        if "/data/t-" in key and self._world.stored(key) is not None:
            for why, version in self._in_reach():
                if key in self._named_by(version):
                    violate(self._world, invariants.NOTHING_NEEDED_DELETED, f"{key} was deleted: {why} names it")
                    break
        self._delete(key)

    def _in_reach(self) -> Iterator[tuple[str, str]]:
        now_ms = self._world.store_time_ms()
        for place, (number, location, _) in enumerate(self.swings):
            is_last = place == len(self.swings) - 1
            if is_last or now_ms - self.swings[place + 1][2] <= UPKEEP_GRACE_S * 1000:
                yield f"version {number}, which {'is' if is_last else 'was'} current", location.removeprefix(BASE)
        for key in self._world.everything():
            found = _METADATA.search(key)
            if found is not None and int(found[1]) > self.swings[-1][0]:
                yield "a version that may still become current", key

    def _named_by(self, key: str) -> frozenset[str]:
        """Every object that a version needs, itself among them. Of what is gone nothing is known."""
        if key not in self._names:
            self._names[key] = frozenset({key, *self._below(key)})
        return self._names[key]

    def _below(self, key: str) -> Iterator[str]:
        for snapshot in self._version(key).snapshots:
            listed = str(snapshot["manifest-list"]).removeprefix(BASE)
            yield listed
            for path in _manifests(self._bytes(listed), listed):
                yield path
                yield from _files(self._bytes(path), path)

    def _version(self, location: str) -> TableMetadata:
        key = location.removeprefix(BASE)
        return Tables().decode(self._bytes(key), key)

    def _bytes(self, key: str) -> bytes:
        stored = self._world.stored(key)
        return b"" if stored is None else stored.data


@lru_cache(1024)
def _manifests(data: bytes, name: str) -> tuple[str, ...]:
    return tuple(one.manifest_path.removeprefix(BASE) for one in manifests_in(data, name))


@lru_cache(1024)
def _files(data: bytes, name: str) -> tuple[str, ...]:
    return tuple(one.file_path.removeprefix(BASE) for one in live_files_in(data, name))
