"""What tier 1 wrote and does not name: commits and files of state whose swing was lost, and files that a newer base replaced.

The chain of commits is never touched: `arco verify` walks it to the first one. A swing that is still on its way could name an old
commit after all, so the manifest is written anew before it is asked what it names: whatever was prepared for an older version
of it can no longer land. Names of both kinds are ULIDs, drawn once.
"""

from collections import deque

from arco.catalog.manifest import decode_commit
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.keys import CatalogCommitKey, CatalogStateKey
from arco.storage.port import Listed
from arco.upkeep.sweep import STRANGE, YOUNG, Sweep

_KEPT_S = UPKEEP_GRACE_S + UPKEEP_CLOCKS_S


async def collect(sweep: Sweep) -> None:
    tier1 = sweep.parts.tier1
    await tier1.current()
    await _collect_files(sweep)
    await _collect_commits(sweep)


async def _collect_files(sweep: Sweep) -> None:
    named = _named_files(sweep)
    old: list[Listed] = []
    async for entry, key in sweep.walk("core", "state"):
        if not isinstance(key, CatalogStateKey):
            sweep.keep(STRANGE)
        elif entry.key in named:
            sweep.keep("the manifest names it")
        elif not sweep.is_older(entry, _KEPT_S):
            sweep.keep(YOUNG)
        else:
            old.append(entry)
    if old:
        await sweep.names_after_boundary()
        named = _named_files(sweep)
        for entry in old:
            if entry.key not in named:
                await sweep.remove(entry, "no manifest names it, and none can any more")


def _named_files(sweep: Sweep) -> set[str]:
    manifest = sweep.parts.tier1.manifest
    return {file.key for file in (manifest.base, *manifest.deltas) if file is not None}


async def _collect_commits(sweep: Sweep) -> None:
    """The chain is walked only if more commits lie there than it has, and only as far as it takes to find the others."""
    listed: dict[str, Listed] = {}
    async for entry, key in sweep.walk("core", "commits"):
        if isinstance(key, CatalogCommitKey):
            listed[key.commit] = entry
        else:
            sweep.keep(STRANGE)
    if len(listed) <= sweep.parts.tier1.manifest.sequence:
        return
    await sweep.names_after_boundary()
    for entry in await _beside_the_chain(sweep, listed):
        if sweep.is_older(entry, _KEPT_S):
            await sweep.remove(entry, "it is in no chain, and can get into none any more")
        else:
            sweep.keep(YOUNG)


async def _beside_the_chain(sweep: Sweep, listed: dict[str, Listed]) -> list[Listed]:
    """Commits that are in no chain: the walk has passed their number, and did not meet them.

    Ids only say where to look next: they are made by clocks that may be wrong, and a commit's own number decides.
    """
    left = sweep.parts.tier1.manifest.sequence
    by_time = deque(sorted(listed, reverse=True))
    found: list[Listed] = []
    async for commit in sweep.parts.tier1.chain():
        listed.pop(commit.id, None)
        left -= 1
        while by_time and by_time[0] > commit.id:
            candidate = by_time.popleft()
            if candidate in listed:
                number = await _number(sweep, listed[candidate])
                if number is None:
                    listed.pop(candidate)
                elif number >= commit.sequence:
                    found.append(listed.pop(candidate))
        if len(listed) <= left:
            return found  # what is left is the rest of the chain
    return found + [entry for entry in listed.values() if await _number(sweep, entry) is not None]


async def _number(sweep: Sweep, entry: Listed) -> int | None:
    """None if it is gone, or cannot be read: then it is told, and stays."""
    stored = await sweep.store.get(entry.key)
    commit = None if stored is None else sweep.decoded(decode_commit, stored.data, entry.key)
    return None if commit is None else commit.sequence
