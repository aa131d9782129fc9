"""What the fold must have come to, judged from the objects alone: the join of the ledger, the chain, the letters, the gaps."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from arco.fold.archiving import original
from arco.fold.dead_letters import letter_key
from arco.fold.folding import Folding
from arco.fold.gaps import gaps_of
from arco.fold.heads import HeadCodec
from arco.fold.joins import State, joined
from arco.fold.manifests import Link, Manifest, decode_manifest
from arco.fold.work import Refused
from arco.kernel.errors import ArcoError, CorruptObject, InvalidInput
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import SegmentId
from arco.ledger.envelope import Event, encode
from arco.ledger.segment import Segment, decode_segment
from arco.ledger.segment_numbers import ranges_of
from arco.storage.cas import CasObject
from arco.storage.keys import Head, HeadKey, parse
from arco_sim import invariants
from arco_sim.scenario import violate
from arco_sim.scenarios.fold_work import SCOPE, TABLES, shred
from arco_sim.world import Env, World


class FoldAudit:
    """One look at the end."""

    def __init__(self, world: World, env: Env, folding: Folding) -> None:
        self._world = world
        self._env = env
        self._folding = folding
        self._objects = world.everything()
        self._segments: dict[SegmentId, tuple[str, Segment | None]] = {}
        for name, data in self._objects.items():
            if "/ledger/" in name or "/archive/" in name:
                key = original(name)
                self._segments[key.segment] = (str(key), _decoded(name, data))

    async def check(self, heads: Iterable[Head]) -> None:
        for key in self._objects:
            try:
                parse(key)
            except ArcoError as error:
                violate(self._world, invariants.ALL_ACCOUNTED_FOR, f"{key} is no object of Arco's: {error}")
        self._check_acknowledged()
        for head in heads:
            manifest = await self._check_chain(head)
            self._check_state(head, manifest)
            self._check_counts(head, manifest)
            self._check_letters(head)
            self._check_gaps(manifest)

    def _events(self) -> list[tuple[str, Event]]:
        return [(name, event) for name, segment in self._segments.values() if segment for event in segment.events]

    def _check_acknowledged(self) -> None:
        known = self._world.notes["known"]
        labels = {event.data.get("label") for _, event in self._events()}
        commits = {event.data.get("commit_key") for _, event in self._events()}
        for label in sorted(known.acknowledged - labels):
            violate(self._world, invariants.NOTHING_LOST, f"{label} was acknowledged and is in no segment")
        for commit in sorted(known.commits - commits):
            violate(self._world, invariants.NOTHING_LOST, f"commit {commit} has a receipt and no event")
        ids = {(event.data["commit_key"], event.id) for _, event in self._events() if "commit_key" in event.data}
        for commit, several in Counter(commit for commit, _ in ids).items():
            if several > 1:
                violate(self._world, invariants.NOTHING_DOUBLED, f"commit {commit} was announced under {several} ids")

    async def _check_chain(self, head: Head) -> Manifest:
        """Every manifest from the head to the first, each by its own bytes."""
        held = await CasObject(
            self._env.store, str(HeadKey(SCOPE, head)), HeadCodec(), self._env.clock, self._env.entropy
        ).read()
        if held is None:
            raise InvalidInput(f"{head} was never published")
        links: dict[int, Link] = {}
        link: Link | None = held.value.manifest
        while link is not None:
            manifest, key = self._manifest(head, link)
            links[manifest.sequence] = link
            self._check_one(key, manifest)
            link = manifest.previous
        if sorted(links) != list(range(1, len(links) + 1)):
            violate(self._world, invariants.MANIFESTS_WHOLE, f"{head} has the numbers {sorted(links)}")
        self._check_far_links(head, links)
        return self._manifest(head, held.value.manifest)[0]

    def _manifest(self, head: Head, link: Link) -> tuple[Manifest, str]:
        key = self._folding.heads.manifest_key(head, link.snapshot)
        return decode_manifest(self._objects[key], Manifest, link, key), key

    def _check_one(self, key: str, manifest: Manifest) -> None:
        for file in manifest.files():
            if file.key not in self._objects or content_hash(self._objects[file.key]) != file.checksum:
                violate(self._world, invariants.MANIFESTS_WHOLE, f"{key} names {file.key}, which is not what was written")
        previous = manifest.previous
        if previous is not None and previous.published_ms > manifest.published_ms:
            violate(self._world, invariants.MANIFESTS_WHOLE, f"the time of {key} goes back")

    def _check_far_links(self, head: Head, links: dict[int, Link]) -> None:
        for sequence, link in links.items():
            manifest, key = self._manifest(head, link)
            for power, far in enumerate(manifest.earlier, start=1):
                nearest = max(number for number in range(1 << power, sequence, 1 << power))
                if far != links[nearest]:
                    violate(self._world, invariants.MANIFESTS_WHOLE, f"{key} names another manifest than number {nearest}")

    def _check_state(self, head: Head, manifest: Manifest) -> None:
        model: dict[str, State] = {}
        for _, event in self._events():
            for table, row in _contributions(head, event):
                joined(table, [row], model.setdefault(table.name, {}))
        state: dict[str, State] = {}
        for file in manifest.files():
            rows: list[dict[str, Any]] = json.loads(self._objects[file.key])
            joined(TABLES[head][file.table], rows, state.setdefault(file.table, {}))
        for name in sorted(model.keys() | state.keys()):
            ours, theirs = state.get(name, {}), model.get(name, {})
            different = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
            if different:
                violate(self._world, invariants.FOLD_EQUALS_MODEL, f"{head}.{name} differs at {different[:3]}")

    def _check_counts(self, head: Head, manifest: Manifest) -> None:
        """A name that was created again after its segment had been moved aside is folded again: then a count may be higher."""
        landed = Counter(step.key for step in self._world.trace if step.what == "put" and step.result.startswith("landed"))
        least = most = 0
        for name, segment in self._segments.values():
            lines = sum(bool(_contributions(head, event)) for event in segment.events) if segment else 0
            least += lines
            most += lines * max(landed[name], 1)
        if not least <= manifest.events <= most:
            violate(
                self._world, invariants.FOLDED_ONCE, f"{head} counts {manifest.events} events of {least} to {most} stored"
            )

    def _check_letters(self, head: Head) -> None:
        for name, segment in self._segments.values():
            if segment is None and not any(
                f"/dead_letters/{head}/{original(name).segment}/" in key for key in self._objects
            ):
                violate(self._world, invariants.NOTHING_LOST, f"{name} is damaged, and {head} has no letter of it")
        for name, event in self._events():
            try:
                list(shred(head, event))
            except InvalidInput:
                letter = str(letter_key(SCOPE, head, Refused(name, event.id, "", encode(event))))
                if letter not in self._objects:
                    violate(self._world, invariants.NOTHING_LOST, f"event {event.id} was refused without a letter")

    def _check_gaps(self, manifest: Manifest) -> None:
        numbers: dict[str, list[int]] = {}
        for _, segment in self._segments.values():
            if segment is not None:
                numbers.setdefault(segment.writer_id, []).append(segment.writer_seq)
        missing = gaps_of({writer: ranges_of(some) for writer, some in numbers.items()})
        if list(manifest.gaps) != missing:
            violate(self._world, invariants.OUTCOMES_TRUE, f"{manifest.head} reports gaps {manifest.gaps}, not {missing}")


def _decoded(name: str, data: bytes) -> Segment | None:
    try:
        return decode_segment(original(name), data)
    except CorruptObject:
        return None


def _contributions(head: Head, event: Event) -> list[Any]:
    try:
        return list(shred(head, event))
    except InvalidInput:
        return []
