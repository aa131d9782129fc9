"""The chain of tier-1 commits: whole, in order, unchanged; and the state that it adds up to.

The chain is walked from the manifest's head to the first commit. Each link is named by the one after it, by id and by hash, so
damage is found at the exact commit. A hash is taken over the bytes as they lie in the store, never over what they decode to:
so a commit of an older version stays right, and not one byte can change unseen.
"""

from dataclasses import dataclass

import msgspec

from arco.catalog.manifest import Commit, Manifest, decode_commit
from arco.catalog.names import Draft, Names
from arco.catalog.read_ahead import ReadAhead
from arco.catalog.state_files import everything
from arco.kernel.errors import ArcoError, CorruptObject, InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import CommitId, clip
from arco.kernel.scope import Scope
from arco.storage.findings import Progress, Report
from arco.storage.keys import CatalogCommitKey, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore

DIFFERENCES_SHOWN_MAX = 20

_RESTORE = "restore this object from a backup or a copy of the root"
_TAMPERED = "find out who changed it; restore it from a backup or a copy of the root"


@dataclass(frozen=True, slots=True)
class Link:
    """Which commit comes next. Its hash is None where a commit that was altered names it: then nothing proves it."""

    id: str
    hash: str | None
    number: int


class Chain:
    """The walk over the commits of one manifest."""

    def __init__(self, store: ObjectStore, scope: Scope, manifest: Manifest, report: Report, progress: Progress) -> None:
        self._store = store
        self._scope = scope
        self._manifest = manifest
        self._report = report
        self._progress = progress
        self._tail = {commit.sequence: commit for commit in manifest.tail}
        self._passed: set[str] = set()
        self._proved = True

    async def walk(self) -> list[Commit] | None:
        """All commits, the first one first; None if not every one of them could be proved."""
        folder = prefix_of(self._scope, "_catalog", "core", "commits")
        keys = [listed.key async for listed in walk(self._store, folder)]
        ahead = ReadAhead(self._store, keys)
        found: list[Commit] = []
        lowest = self._manifest.sequence + 1
        try:
            link = self._head()
            while link is not None:
                number = link.number
                commit, link = await self._follow(link, ahead)
                lowest = lowest if commit is None else number
                found += [] if commit is None else [commit]
                self._progress("commits", len(found), self._manifest.sequence)
        finally:
            ahead.close()
        self._report.count("commits", len(found))
        # Below a break nobody can tell a commit of the chain from one that lost its swing.
        others = max(0, len(keys) - len(found))
        self._report.count("commits_beside_the_chain", others if lowest <= 1 else 0)
        if lowest > 1 and others:
            self._report.count("commits_not_looked_at", others)
        return found[::-1] if self._proved else None

    def _head(self) -> Link | None:
        manifest = self._manifest
        if manifest.last_commit_id is not None:
            return Link(manifest.last_commit_id, manifest.last_commit_hash, manifest.sequence)
        if manifest.sequence:
            what = f"the manifest counts {manifest.sequence} commits and names none of them"
            self._break("chain_has_no_head", "manifest", what, _RESTORE)
        return None

    async def _follow(self, link: Link, ahead: ReadAhead) -> tuple[Commit | None, Link | None]:
        """The commit of a link, and the link to the one before it."""
        try:
            key = str(CatalogCommitKey(self._scope, CommitId(link.id)))
        except InvalidInput:
            key = link.id
            data = None
        else:
            found = await ahead.get(key)
            data = None if found is None else found.data
        commit, hash_is_right = self._examined(link, key, data)
        if commit is None:
            self._proved = False
            if link.number > 1:
                self._report.note(f"commits 1 to {link.number - 1} were not looked at: commit {link.number} cannot be read")
            return None, None
        if hash_is_right:
            self._check_place(link, key, commit)
        else:
            self._proved = False
        return commit, self._previous(link, key, commit, hash_is_right=hash_is_right)

    def _examined(self, link: Link, key: str, data: bytes | None) -> tuple[Commit | None, bool]:
        """The commit, and whether it is the one that the link names. What is wrong with it is reported."""
        commit: Commit | None = None
        problem = ("commit_missing", f"commit {link.number} of the chain is missing ({key})", _RESTORE)
        if data is not None:
            try:
                commit = decode_commit(data, key)
            except CorruptObject as error:
                problem = ("commit_unreadable", f"commit {link.number} does not parse: {error.message}", _RESTORE)
            else:
                if link.hash == fingerprint("catalog commit", data):
                    return commit, True
                what = f"commit {link.number} ({key}) is not what was committed: its hash is wrong"
                problem = ("commit_altered", what, _TAMPERED)
        if link.hash is None:
            # Named by a commit that was altered itself: what is wrong with the name is not this commit's fault.
            return (commit if commit is not None and commit.sequence == link.number else None), False
        self._report.find(problem[0], key, problem[1], problem[2])
        copy = self._tail.get(link.number)
        return (copy, True) if copy is not None and copy.hash() == link.hash else (commit, False)

    def _check_place(self, link: Link, key: str, commit: Commit) -> None:
        if commit.sequence != link.number:
            what = f"commit {commit.id} is number {commit.sequence}, and the chain has it as number {link.number}"
            self._break("commit_out_of_order", key, what, _TAMPERED)
        copy = self._tail.get(commit.sequence)
        if copy is not None and copy != commit:
            what = f"the manifest's copy of commit {commit.sequence} is not the commit ({key})"
            self._report.find("tail_differs", "manifest", what, "restore the manifest from a backup or a copy of the root")

    def _previous(self, link: Link, key: str, commit: Commit, *, hash_is_right: bool) -> Link | None:
        number = commit.sequence if hash_is_right else link.number
        self._passed.add(commit.id)
        if commit.previous_id is None and number > 1:
            self._break("chain_ends_early", key, f"commit {number} ({key}) names none before it", _TAMPERED)
        elif commit.previous_id is not None and (number <= 1 or commit.previous_id in self._passed):
            self._break("chain_goes_on", key, f"commit {number} ({key}) names one before it that cannot be", _TAMPERED)
        elif commit.previous_id is not None:
            altered = link.hash is not None and not hash_is_right
            return Link(commit.previous_id, None if altered else commit.previous_hash, number - 1)
        return None

    def _break(self, code: str, subject: str, what: str, todo: str) -> None:
        self._proved = False
        self._report.find(code, subject, what, todo)


def replayed(commits: list[Commit], report: Report, progress: Progress) -> Names | None:
    """The state that the commits add up to; None if one does not apply."""
    names = Names()
    for done, commit in enumerate(commits):
        draft = Draft(names)
        try:
            for operation in commit.operations:
                draft.apply(operation, commit.at_ms)
        except ArcoError as error:
            what = f"commit {commit.sequence} does not apply to the state before it ({error.message})"
            report.find("commit_does_not_apply", commit.id, what, "report this: it is a bug, or the chain was rewritten")
            return None
        draft.merge()
        progress("replay", done + 1, len(commits))
    return names


def compare(from_commits: Names, from_files: Names, report: Report) -> None:
    """Every document must be the same, byte for byte, whichever way the state was made."""
    theirs, ours = _documents(from_commits), _documents(from_files)
    different = sorted(key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key))
    for kind, key in different[:DIFFERENCES_SHOWN_MAX]:
        how = "is not in the state" if (kind, key) not in ours else "is in the state alone"
        how = "differs" if (kind, key) in ours and (kind, key) in theirs else how
        what = f"{kind} {clip(key, 200)} {how}, compared with what the commits add up to"
        report.find("state_differs", key, what, "report this: servers see another state than was committed")
    if len(different) > DIFFERENCES_SHOWN_MAX:
        report.note(f"{len(different) - DIFFERENCES_SHOWN_MAX} more documents differ")


def _documents(names: Names) -> dict[tuple[str, str], bytes]:
    return {(kind, key): msgspec.json.encode(document, order="deterministic") for kind, key, document in everything(names)}
