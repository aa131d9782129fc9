"""What tables were called at a moment, where they do not remember it themselves: from the chain of commits.

An entry knows the names that it had before. One that was registered again is a new entry and knows none of them, and what was
purged has no entry at all. For those alone the chain is walked, from its end to before the commits that are told now, and no
further than a bound: each commit that is not in the manifest is a request.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arco.catalog.manifest import Commit
from arco.catalog.model import Entry, Format, Kind, Levels
from arco.catalog.names import Names
from arco.catalog.operations import Confirm, Create, Drop, Operation, Rename, Undrop
from arco.catalog.tier1 import Tier1
from arco.kernel.limits import HISTORY_COMMITS_MAX


@dataclass(frozen=True, slots=True)
class Naming:
    """A name that something got, and by which commit. `made` is its entry as it was made there, if it was."""

    sequence: int
    at_ms: int
    namespace: Levels
    name: str
    made: Entry | None


@dataclass(frozen=True, slots=True)
class Past:
    """The names of one table, the oldest first, as far as they were found."""

    kind: Kind
    format: Format
    namings: tuple[Naming, ...]

    def before_commit(self, sequence: int) -> Naming:
        """The name that a commit of tier 1 met."""
        return self._last([one for one in self.namings if one.sequence < sequence])

    def before(self, at_ms: int) -> Naming:
        """The name at a moment, before it changed at this very moment."""
        return self._last([one for one in self.namings if one.at_ms < at_ms])

    def _last(self, earlier: Sequence[Naming]) -> Naming:
        return earlier[-1] if earlier else self.namings[0]


def forgotten(commits: Sequence[Commit], mentioned: Mapping[str, int], names: Names) -> set[str]:
    """Of tables that are mentioned, each since a moment, those that do not know what they were called then."""
    anew = {one.uuid for commit in commits for operation in commit.operations for one in _made(operation) if one.start}
    return {uuid for uuid, since_ms in mentioned.items() if uuid in anew or _forgot(names.identity(uuid), since_ms)}


def _forgot(entry: Entry | None, since_ms: int) -> bool:
    return entry is None or (entry.start is not None and since_ms < entry.created_ms)


async def pasts_of(tier1: Tier1, uuids: Collection[str], told: int) -> dict[str, Past]:
    """The names of some tables, back to those that they had at commit number `told`; without tables that nothing is known of."""
    found: dict[str, list[Naming]] = {uuid: [] for uuid in uuids}
    wanted, left = set(uuids), HISTORY_COMMITS_MAX
    if wanted:
        async for commit in tier1.chain():
            for uuid, naming in _namings(commit):
                if uuid in wanted:
                    found[uuid].append(naming)
                    if commit.sequence <= told or _is_first(naming):
                        wanted.discard(uuid)
            left -= 1
            if not wanted or not left:
                break
    return {uuid: past for uuid, some in found.items() if (past := _past(some, tier1.names.identity(uuid))) is not None}


def _is_first(naming: Naming) -> bool:
    """Only what was registered can have been there before under the same identity."""
    return naming.made is not None and naming.made.start is None


def _past(newest_first: Sequence[Naming], now: Entry | None) -> Past | None:
    known = next((one.made for one in newest_first if one.made is not None), now)
    return None if known is None or not newest_first else Past(known.kind, known.format, tuple(reversed(newest_first)))


def _namings(commit: Commit) -> Iterator[tuple[str, Naming]]:
    """The names that a commit gives, the last first."""
    for operation in reversed(commit.operations):
        for entry in _made(operation):
            yield entry.uuid, Naming(commit.sequence, commit.at_ms, entry.namespace, entry.name, entry)
        if isinstance(operation, Rename | Undrop):
            naming = Naming(commit.sequence, commit.at_ms, operation.namespace, operation.name, None)
            yield operation.uuid, naming


def _made(operation: Operation) -> Iterator[Entry]:
    match operation:
        case Create():
            yield operation.entry
        case Confirm():
            yield operation.reservation.entry
        case Drop(successor=Create() as heir):
            yield heir.entry
        case _:
            return
