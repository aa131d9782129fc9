"""Files of state that a process keeps: up to a limit, and never without those that somebody reads."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from arco.fold.joins import joined
from arco.fold.tables import RUNS
from arco.fold.work import StateFile
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject
from arco.kernel.scope import Scope
from arco.read.cut import Cut, Layers
from arco.read.files import Files, Hold
from arco.read.reader import Reader
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent
from arco.surface.http.libraries import Libraries
from fixtures.state.state_files import state_file
from fixtures.state.state_world import World
from stand_ins.hand_clock import HandClock

SIZE = 100


class Bucket:
    """A store with files of state, and what was asked of it."""

    def __init__(self) -> None:
        self.store = MemoryStore(HandClock())

    async def put(self, number: int) -> StateFile:
        data = str(number).encode() * SIZE
        checksum = hashlib.sha256(data).hexdigest()
        await self.store.put(f"state/{number}", data, Absent())
        return StateFile(
            table="runs", key=f"state/{number}", checksum=checksum, rows=1, bytes=SIZE, buckets=(0,), least=(), greatest=()
        )


def run(test: Callable[[Bucket], Awaitable[None]]) -> None:
    async def go() -> None:
        await test(Bucket())

    asyncio.run(go())


def kept(folder: Path) -> set[str]:
    return {path.read_text()[0] for path in folder.iterdir()}


def count(folder: Path) -> int:
    return len(list(folder.iterdir()))


def lay(place: Path, number: int) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(str(number).encode() * SIZE)


def test_files_that_nobody_asked_for_longest_go_first(tmp_path: Path) -> None:
    async def test(bucket: Bucket) -> None:
        files = Files(bucket.store, cache=tmp_path, kept_bytes_max=3 * SIZE)
        some = [await bucket.put(number) for number in range(5)]
        for number in (0, 1, 2, 0, 3):
            await files.paths([some[number]], Hold())
        assert kept(tmp_path) == {"0", "2", "3"}
        await files.paths([some[4]], Hold())
        assert kept(tmp_path) == {"0", "3", "4"}
        await files.paths([some[1]], Hold())
        assert kept(tmp_path) == {"3", "4", "1"}, "what is gone is fetched anew"

    run(test)


def test_a_file_that_somebody_holds_stays_beyond_the_limit(tmp_path: Path) -> None:
    async def test(bucket: Bucket) -> None:
        files, hold = Files(bucket.store, cache=tmp_path, kept_bytes_max=SIZE), Hold()
        some = [await bucket.put(number) for number in range(4)]
        await files.paths(some[:2], hold)
        await files.paths([some[2]], Hold())
        assert kept(tmp_path) == {"0", "1", "2"}
        await files.paths([some[3]], Hold())
        assert kept(tmp_path) == {"0", "1", "3"}
        hold = Hold()
        await files.paths([some[3]], hold)
        assert kept(tmp_path) == {"3"}

    run(test)


def test_what_could_not_be_fetched_takes_no_room(tmp_path: Path) -> None:
    async def test(bucket: Bucket) -> None:
        files = Files(bucket.store, cache=tmp_path, kept_bytes_max=2 * SIZE)
        some = [await bucket.put(number) for number in range(3)]
        await bucket.store.delete(some[2].key)
        await files.paths(some[:2], Hold())
        for _ in range(5):
            with pytest.raises(CorruptObject, match="is gone"):
                await files.paths([some[2]], Hold())
        await files.paths([some[0]], Hold())
        assert kept(tmp_path) == {"0", "1"}

    run(test)


def test_files_in_place_are_forgotten_and_never_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bucket: Bucket) -> None:
        monkeypatch.setattr("arco.read.files.STATE_CHECKED_FILES_MAX", 1)
        files = Files(bucket.store, folder=tmp_path, kept_bytes_max=0)
        for number in range(3):
            file = await bucket.put(number)
            lay(tmp_path / file.key, number)
            await files.paths([file], Hold())
        assert len(files._ready) == 1
        assert kept(tmp_path / "state") == {"0", "1", "2"}

    run(test)


def test_an_open_reader_holds_its_files_until_it_is_closed(tmp_path: Path) -> None:
    async def test(bucket: Bucket) -> None:
        files = Files(bucket.store, cache=tmp_path, kept_bytes_max=1)
        readers: list[Reader] = []
        for number in range(2):
            world = World(number)
            world.run(str(number), "shop", 1, "succeeded", 1)
            file, data = state_file(RUNS, list(joined(RUNS, world.rows["runs"]).values()), f"state/{number}")
            await bucket.store.put(file.key, data, Absent())
            readers.append(Reader(Cut(str(number), 0, {"runs": Layers(base=(file,))}), files))
        first, second = readers
        relation = await first.relation(RUNS)
        await second.relation(RUNS)
        assert await first.rows(f"SELECT count(*) AS n FROM {relation}"), "DuckDB opens it only now"
        first.close()
        await second.relation(RUNS)
        assert count(tmp_path) == 1
        second.close()

    run(test)


def test_the_workspaces_of_a_server_share_one_limit() -> None:
    async def test(bucket: Bucket) -> None:
        never: Any = None
        libraries = Libraries(bucket.store, HandClock(), SeededEntropy(1), None, lambda _: never)
        one, other = (libraries.of(Scope.of("default", name)) for name in ("one", "other"))
        assert one._files is other._files
        libraries.close()

    run(test)
