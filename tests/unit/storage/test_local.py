"""The folder as a store: several processes, dead owners, foreign files, clocks that stand still, and folders that vanish."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from arco.kernel.entropy import SeededEntropy, SystemEntropy
from arco.kernel.errors import InvalidInput, StoreRefused, Unavailable
from arco.storage.disk import FileStat, RealDisk
from arco.storage.local import LocalFiles, LocalStore
from arco.storage.paging import walk
from arco.storage.port import Absent, Always, Condition, Landed, Lost, Matches, Outcome, SignedMethod, Unknown, Version
from arco.storage.readback import put_settled
from stand_ins.hand_clock import ConstantEntropy, HandClock, ReadingsClock

NOT_AS_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="running as root ignores permissions")
MEETING_S = 10.0
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

Scenario = Callable[[LocalStore], Awaitable[None]]


def run(root: Path, scenario: Scenario, **how) -> None:
    """One store on one folder for one scenario."""

    async def whole() -> None:
        store = LocalStore(str(root), how.pop("clock", HandClock()), how.pop("entropy", SystemEntropy()), sync=False, **how)
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(whole())


def run_two(root: Path, scenario: Callable[[LocalStore, LocalStore], Awaitable[None]]) -> None:
    """Two stores on one folder, as two processes would have."""

    async def whole(one: LocalStore) -> None:
        other = LocalStore(str(root), HandClock(), SystemEntropy(), sync=False)
        try:
            await scenario(one, other)
        finally:
            await other.close()

    run(root, whole)


async def landed(store: LocalStore, key: str, data: bytes, condition: Condition | None = None) -> Version:
    outcome = await store.put(key, data, condition or Absent())
    assert isinstance(outcome, Landed), outcome
    assert outcome.version is not None
    return outcome.version


async def data_of(store: LocalStore, key: str) -> bytes | None:
    found = await store.get(key)
    return None if found is None else found.data


async def names(store: LocalStore, prefix: str = "") -> list[str]:
    return [entry.key async for entry in walk(store, prefix, page_keys=2)]


# Several processes


def test_two_stores_on_one_folder_see_each_others_writes(tmp_path):
    async def scenario(one: LocalStore, other: LocalStore) -> None:
        version = await landed(one, "a", b"one")
        assert isinstance(await other.put("a", b"other", Absent()), Lost)
        version = await landed(other, "a", b"other", Matches(version))
        assert isinstance(await one.put("a", b"stale", Matches(Version("0-0-0"))), Lost)
        assert (await one.get("a")).version == version
        await one.delete("a")
        assert await other.get("a") is None

    run_two(tmp_path, scenario)


def test_two_stores_on_one_folder_lose_no_increment(tmp_path):
    async def scenario(one: LocalStore, other: LocalStore) -> None:
        await landed(one, "n", b"0")

        async def count(store: LocalStore) -> None:
            done = 0
            while done < 15:
                found = await store.get("n")
                outcome = await store.put("n", b"%d" % (int(found.data) + 1), Matches(found.version))
                done += isinstance(outcome, Landed)

        await asyncio.gather(count(one), count(other), count(one), count(other))
        assert await data_of(one, "n") == b"60"

    run_two(tmp_path, scenario)


def test_two_stores_on_one_folder_keep_their_temporaries_apart(tmp_path):
    async def scenario(one: LocalStore, other: LocalStore) -> None:
        await landed(one, "a", b"x")
        await landed(other, "b", b"x")
        assert len([entry for entry in (tmp_path / ".arco/tmp").iterdir() if entry.is_dir()]) == 2

    run_two(tmp_path, scenario)


def test_a_store_that_is_closed_leaves_no_temporaries(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "a", b"x")
        await landed(store, "a", b"y", Always())
        assert isinstance(await store.put("a", b"z", Absent()), Lost)
        assert isinstance(await store.put("a", b"z", Matches(Version("stale"))), Lost)
        assert [left for left in (tmp_path / ".arco/tmp").rglob("*") if left.suffix != ".lock" and left.is_file()] == []

    run(tmp_path, scenario)
    assert list((tmp_path / ".arco/tmp").iterdir()) == []


def test_the_lock_of_temporaries_is_let_go_of_once_whoever_else_finds_their_folder_gone_meanwhile(tmp_path):
    released: list[int] = []

    class Disk(RealDisk):
        def release(self, handle: int) -> None:
            released.append(handle)
            if len(released) < 3:
                files.forget_folders()
            super().release(handle)

    files = LocalFiles(str(tmp_path), Disk(), HandClock(), SeededEntropy("one"))
    assert isinstance(files.put("a", b"x", Absent()), Landed)
    files.close()
    assert len(released) == 1


def test_a_store_that_only_reads_writes_nothing(tmp_path):
    async def scenario(store: LocalStore) -> None:
        assert await store.get("a") is None
        assert await store.head("a") is None
        assert await store.get_range("a", 0, 1) is None
        assert await names(store) == []
        assert await store.sweep_temporaries() == 0

    run(tmp_path / "lake", scenario)
    assert list(tmp_path.iterdir()) == []


# Dead owners

STALLED_WRITER = """
import asyncio, sys, threading
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.disk import FileStat, RealDisk
from arco.storage.local import LocalStore
from arco.storage.port import Absent

class StallsBeforeNaming(RealDisk):
    def link(self, source, target):
        print("stalled", flush=True)
        threading.Event().wait()

store = LocalStore(sys.argv[1], SystemClock(), SystemEntropy(), sync=False, disk=StallsBeforeNaming())
asyncio.run(store.put("never", b"x" * 1000, Absent()))
"""


def test_only_the_temporaries_of_dead_owners_are_swept(tmp_path):
    """A writer is stopped after it wrote its temporary and before it gave it a name; then it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", STALLED_WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        try:
            assert writer.stdout.readline() == "stalled\n"

            async def while_it_lives(store: LocalStore) -> None:
                await landed(store, "a", b"x")
                assert await store.sweep_temporaries() == 0

            run(tmp_path, while_it_lives)
            left = [path for path in (tmp_path / ".arco/tmp").rglob("*") if path.is_file() and path.suffix != ".lock"]
            assert [path.stat().st_size for path in left] == [1000]
        finally:
            writer.kill()
        writer.wait()

    async def after_its_death(store: LocalStore) -> None:
        assert await store.sweep_temporaries() == 1
        assert await store.sweep_temporaries() == 0
        await landed(store, "b", b"x")
        assert await names(store) == ["a", "b"]

    run(tmp_path, after_its_death)
    assert list((tmp_path / ".arco/tmp").iterdir()) == []


def test_the_first_write_of_a_process_sweeps_what_the_dead_left(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", STALLED_WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "stalled\n"
        writer.kill()
        writer.wait()
    run(tmp_path, lambda store: landed(store, "a", b"x"))
    assert list((tmp_path / ".arco/tmp").iterdir()) == []


def test_a_store_does_not_sweep_its_own_temporaries(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "a", b"x")
        assert await store.sweep_temporaries() == 0
        await landed(store, "b", b"x")

    run(tmp_path, scenario)


def test_what_a_killed_writer_had_named_stays(tmp_path):
    """A crash between naming and dropping the temporary leaves two names of one file; sweeping removes only one."""

    async def before(store: LocalStore) -> None:
        await landed(store, "a", b"kept")

    run(tmp_path, before)
    orphaned = tmp_path / ".arco/tmp" / ULID
    orphaned.mkdir()
    orphaned.with_suffix(".lock").touch()
    os.link(tmp_path / "a", orphaned / "0")

    async def after(store: LocalStore) -> None:
        assert await store.sweep_temporaries() == 1
        assert await data_of(store, "a") == b"kept"

    run(tmp_path, after)


# What a listing shows


def test_a_listing_hides_the_stores_own_folder(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "a", b"x")
        await landed(store, "b/.arco/c", b"x")
        await landed(store, ".arcona", b"x")
        assert (tmp_path / ".arco").is_dir()
        assert await names(store) == [".arcona", "a", "b/.arco/c"]
        for hidden in (".arco/tmp/x", ".arco", ".arco/locks/0000"):
            with pytest.raises(InvalidInput):
                await store.get(hidden)
        with pytest.raises(InvalidInput):
            await store.list_page(".arco/")

    run(tmp_path, scenario)


def test_foreign_files_whose_names_are_no_text_are_skipped(tmp_path):
    def foreign(path: bytes) -> Path:
        return Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + path))

    foreign(b"f/\xc3(").mkdir(parents=True)
    for path in (b"f/\xff\xfe", b"\xe4", b"f/\xc3(/inside"):
        foreign(path).write_bytes(b"foreign")

    async def scenario(store: LocalStore) -> None:
        await landed(store, "f/a", b"x")
        await landed(store, "f/z", b"x")
        assert await names(store) == ["f/a", "f/z"]

    run(tmp_path, scenario)


def test_files_that_others_put_there_are_objects(tmp_path):
    async def scenario(store: LocalStore) -> None:
        (tmp_path / "data").mkdir(parents=True)
        (tmp_path / "data/part-0.parquet").write_bytes(b"spark")
        assert await data_of(store, "data/part-0.parquet") == b"spark"
        assert await names(store) == ["data/part-0.parquet"]
        version = (await store.head("data/part-0.parquet")).version
        await landed(store, "data/part-0.parquet", b"arco", Matches(version))

    run(tmp_path, scenario)


def test_links_to_folders_are_not_followed_so_a_loop_ends(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "f/g/a", b"x")
        (tmp_path / "f/g/up").symlink_to("..")
        (tmp_path / "f/top").symlink_to(tmp_path)
        (tmp_path / "f/dangling").symlink_to("nowhere")
        assert await names(store) == ["f/g/a"]
        assert await names(store, "f/g/") == ["f/g/a"]

    run(tmp_path, scenario)


def test_empty_folders_are_not_listed(tmp_path):
    async def scenario(store: LocalStore) -> None:
        (tmp_path / "empty/er").mkdir(parents=True)
        await landed(store, "a/b", b"x")
        await store.delete("a/b")
        assert await names(store) == []
        assert (tmp_path / "a").is_dir()

    run(tmp_path, scenario)


def test_an_object_lies_where_its_name_says(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "acme/prod/data/größe %20.parquet", b"bytes")

    run(tmp_path, scenario)
    assert (tmp_path / "acme/prod/data/größe %20.parquet").read_bytes() == b"bytes"


# Versions


CLOCKS: dict[str, Callable[[], HandClock]] = {
    "stands still": HandClock,
    "goes back": lambda: ReadingsClock(range(2_000_000, 0, -1000)),
    "jumps back to one moment": lambda: ReadingsClock([9_000_000, 5_000_000, 9_000_000, 5_000_000] * 50),
}


@pytest.mark.parametrize("entropy", [ConstantEntropy(fraction=0.0), ConstantEntropy(fraction=0.999999), SeededEntropy(1)])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("how", ["overwrite", "swap"])
def test_hazard_14_a_state_that_returns_has_a_version_of_its_own(tmp_path, clock, entropy, how):
    """A, B, A with equal bytes: whoever held the first A must not swap the second."""

    async def scenario(store: LocalStore) -> None:
        versions = [await landed(store, "a", b"A")]
        for data in (b"B", b"A", b"B", b"A", b"A"):
            condition = Always() if how == "overwrite" else Matches(versions[-1])
            versions.append(await landed(store, "a", data, condition))
        assert len(set(versions)) == len(versions)
        for stale in versions[:-1]:
            assert isinstance(await store.put("a", b"stale", Matches(stale)), Lost)
        await landed(store, "a", b"on", Matches(versions[-1]))

    run(tmp_path, scenario, clock=CLOCKS[clock](), entropy=_NewFolderNames(entropy))


class _NewFolderNames:
    """The given fractions for times, and real randomness for the names of folders."""

    def __init__(self, entropy) -> None:
        self.fraction = entropy.fraction
        self.token_bytes = SystemEntropy().token_bytes


def test_the_version_of_a_write_is_the_one_that_is_read_from_the_disk(tmp_path):
    async def scenario(store: LocalStore) -> None:
        for condition in (Absent(), Always(), Always()):
            version = await landed(store, "a", b"same", condition)
            assert (await store.get("a")).version == (await store.head("a")).version == version

    run(tmp_path, scenario)


def test_a_file_that_somebody_edited_has_another_version(tmp_path):
    async def scenario(store: LocalStore) -> None:
        version = await landed(store, "a", b"A")
        (tmp_path / "a").write_bytes(b"edited")
        assert (await store.head("a")).version != version
        assert isinstance(await store.put("a", b"B", Matches(version)), Lost)

    run(tmp_path, scenario)


# What vanishes


def test_a_folder_removed_under_the_store_is_a_clear_error_and_heals(tmp_path):
    root = tmp_path / "lake"

    async def scenario(store: LocalStore) -> None:
        await landed(store, "f/a", b"x")
        shutil.rmtree(root)
        root.mkdir()
        with pytest.raises(Unavailable, match="No such file"):
            await store.put("f/a", b"y", Absent())
        await landed(store, "f/a", b"y")
        assert await data_of(store, "f/a") == b"y"

    run(root, scenario)


@pytest.mark.parametrize("condition", [Absent(), Always()], ids=["create", "overwrite"])
@pytest.mark.parametrize("what", ["f", ".arco", ".arco/tmp", ".arco/locks"])
def test_whatever_was_removed_a_settled_write_lands_by_itself(tmp_path, what, condition):
    root = tmp_path / "lake"

    async def scenario(store: LocalStore) -> None:
        await landed(store, "f/a", b"x")
        await landed(store, "f/a", b"x", Always())
        shutil.rmtree(root / what)
        outcome = await put_settled(
            store, "f/g/b", b"y", condition, clock=HandClock(), entropy=SeededEntropy(1)
        )  # fmt: skip
        assert isinstance(outcome, Landed)
        assert await data_of(store, "f/g/b") == b"y"

    run(root, scenario)


def test_a_root_that_is_gone_answers_nothing_until_it_is_back(tmp_path):
    """A disk that was taken away must not read as an empty catalog, nor be written to where it was."""
    root, away = tmp_path / "lake", tmp_path / "away"

    async def scenario(store: LocalStore) -> None:
        version = await landed(store, "f/a", b"x")
        root.rename(away)
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: store.get("f/a"),
            lambda: store.get("g"),
            lambda: store.get_range("f/a", 0, 1),
            lambda: store.head("f/a"),
            lambda: store.list_page(""),
            lambda: store.put("f/b", b"y", Absent()),
            lambda: store.put("f/b", b"y", Absent()),
            lambda: store.put("f/a", b"y", Matches(version)),
            lambda: store.delete("f/a"),
            lambda: store.make_folder("g/"),
        ]
        for ask in asked:
            with pytest.raises(Unavailable):
                await ask()
        assert not root.exists()
        away.rename(root)
        assert await names(store) == ["f/a"]
        await landed(store, "f/b", b"y")

    run(root, scenario)


def test_a_root_that_only_readers_knew_is_missed_too(tmp_path):
    root = tmp_path / "lake"

    async def before(store: LocalStore) -> None:
        await landed(store, "f/a", b"x")

    async def after(store: LocalStore) -> None:
        assert await names(store) == ["f/a"]
        shutil.rmtree(root)
        with pytest.raises(Unavailable, match="the root is gone"):
            await store.get("f/a")

    run(root, before)
    run(root, after)


def test_a_root_that_was_never_there_is_empty(tmp_path):
    async def scenario(store: LocalStore) -> None:
        assert await store.get("f/a") is None
        assert await names(store) == []
        await landed(store, "f/a", b"x")

    run(tmp_path / "lake", scenario)


def test_a_root_whose_parent_is_missing_is_a_clear_error(tmp_path):
    async def scenario(store: LocalStore) -> None:
        with pytest.raises(Unavailable, match="no/such/lake"):
            await store.put("a", b"x", Absent())

    run(tmp_path / "no/such/lake", scenario)
    assert list(tmp_path.iterdir()) == []


# What is refused


@NOT_AS_ROOT
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    root = tmp_path / "lake"
    root.mkdir(mode=0o555)

    async def scenario(store: LocalStore) -> None:
        with pytest.raises(StoreRefused, match="no permission"):
            await store.put("a", b"x", Absent())

    run(root, scenario)


def refusing(error_number: int) -> RealDisk:
    class Refusing(RealDisk):
        """A disk that refuses to give a name, and says why."""

        def link(self, source: str, target: str) -> None:
            raise OSError(error_number, os.strerror(error_number), target)

        rename = link

    return Refusing()


REFUSALS = [
    (errno.EACCES, StoreRefused, "no permission"),
    (errno.EPERM, StoreRefused, "no permission"),
    (errno.EROFS, StoreRefused, "no permission"),
    (errno.EXDEV, StoreRefused, "another file system"),
    (errno.ENOSPC, Unavailable, "no space left"),
    (errno.EDQUOT, Unavailable, "no space left"),
    (errno.EISDIR, StoreRefused, "a file and a folder at once"),
    (errno.ENOTDIR, StoreRefused, "a file and a folder at once"),
]


@pytest.mark.parametrize(("number", "error", "says"), REFUSALS, ids=[errno.errorcode[number] for number, _, _ in REFUSALS])
@pytest.mark.parametrize("condition", [Absent(), Always()], ids=["create", "overwrite"])
def test_a_name_that_was_surely_not_given_is_an_error_and_leaves_nothing(tmp_path, number, error, says, condition):
    async def scenario(store: LocalStore) -> None:
        with pytest.raises(error, match=says):
            await store.put("a", b"x", condition)
        assert await store.get("a") is None

    run(tmp_path, scenario, disk=refusing(number))
    assert list((tmp_path / ".arco/tmp").iterdir()) == []


@pytest.mark.parametrize("condition", [Absent(), Always()], ids=["create", "overwrite"])
def test_a_disk_that_fails_while_giving_the_name_leaves_it_unknown(tmp_path, condition):
    async def scenario(store: LocalStore) -> None:
        assert isinstance(await store.put("a", b"x", condition), Unknown)

    run(tmp_path, scenario, disk=refusing(errno.EIO))


def test_a_name_that_is_given_but_not_durable_is_unknown(tmp_path):
    class FailsToSync(RealDisk):
        """The folders of objects cannot be synced once they exist."""

        def sync_folder(self, path: str) -> None:
            if path.endswith("/f"):
                raise OSError(errno.EIO, "Input/output error", path)

    async def scenario() -> list[Outcome]:
        store = LocalStore(str(tmp_path), HandClock(), SystemEntropy(), sync=True, disk=FailsToSync())
        try:
            return [await store.put("f/a", b"x", Absent()), await store.put("f/a", b"y", Always())]
        finally:
            await store.close()

    assert all(isinstance(outcome, Unknown) for outcome in asyncio.run(scenario()))
    assert (tmp_path / "f/a").read_bytes() == b"y"


@pytest.mark.parametrize("root", ["file", "file/below"])
def test_a_root_that_is_a_file_is_not_an_empty_one_nor_gone(tmp_path, root):
    async def scenario() -> None:
        store = LocalStore(str(tmp_path / root), HandClock(), SystemEntropy(), sync=True)
        for ask in (store.put("a", b"x", Absent()), store.put("a", b"x", Always())):
            with pytest.raises(StoreRefused, match=f"the root .*{root} is a file, or lies in one"):
                await ask
        if root == "file":
            for ask in (store.get("a"), store.head("a"), store.list_page("", "", 1)):
                with pytest.raises(StoreRefused, match="is a file"):
                    await ask
        await store.close()

    (tmp_path / "file").write_bytes(b"")
    asyncio.run(scenario())
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize("below", ["a/b", "a/b/c/d"])
@pytest.mark.parametrize("condition", [Absent(), Always()], ids=["create", "overwrite"])
def test_a_file_cannot_be_a_folder_too(tmp_path, below, condition):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "a", b"file")
        with pytest.raises(StoreRefused, match="a file and a folder at once"):
            await store.put(below, b"x", condition)
        assert await store.get(below) is None
        assert await data_of(store, "a") == b"file"

    run(tmp_path, scenario)


def test_a_folder_cannot_be_overwritten_by_a_file(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await landed(store, "a/b", b"x")
        with pytest.raises(StoreRefused, match="a file and a folder at once"):
            await store.put("a", b"file", Always())
        assert await store.get("a") is None
        assert isinstance(await store.put("a", b"file", Matches(Version("1-1-1"))), Lost)
        assert await names(store) == ["a/b"]

    run(tmp_path, scenario)


def test_a_folder_signs_no_links(tmp_path):
    async def scenario(store: LocalStore) -> None:
        with pytest.raises(InvalidInput, match="no links to sign"):
            await store.sign("a", SignedMethod.GET, 60)

    run(tmp_path, scenario)


# Power


class Noted(RealDisk):
    """Writes down the order of the calls that make a write durable."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def write_new(self, path, data, mtime_ns, *, sync):
        self.steps.append(f"write{' synced' if sync else ''}")
        return super().write_new(path, data, mtime_ns, sync=sync)

    def link(self, source, target):
        self.steps.append(f"name {Path(target).name}")
        super().link(source, target)

    def rename(self, source, target):
        self.steps.append(f"name {Path(target).name}")
        super().rename(source, target)

    def sync_folder(self, path):
        self.steps.append(f"sync {Path(path).name}")
        super().sync_folder(path)


@pytest.mark.parametrize("condition", [Absent(), Always()], ids=["create", "overwrite"])
def test_bytes_are_durable_before_the_name_and_the_name_before_the_answer(tmp_path, condition):
    disk = Noted()

    async def scenario() -> None:
        store = LocalStore(str(tmp_path / "lake"), HandClock(), SystemEntropy(), sync=True, disk=disk)
        try:
            await landed(store, "f/warm", b"x", condition)
            disk.steps.clear()
            await landed(store, "f/a", b"x", condition)
        finally:
            await store.close()

    asyncio.run(scenario())
    steps = [step for step in disk.steps if "locks" not in step]
    assert steps == ["write synced", "name a", "sync f"]


def test_who_is_told_that_a_name_is_taken_can_rely_on_it_after_a_power_cut(tmp_path):
    disk = Noted()

    async def scenario() -> None:
        store = LocalStore(str(tmp_path), HandClock(), SystemEntropy(), sync=True, disk=disk)
        try:
            await landed(store, "f/a", b"x")
            disk.steps.clear()
            assert isinstance(await store.put("f/a", b"y", Absent()), Lost)
        finally:
            await store.close()

    asyncio.run(scenario())
    assert disk.steps == ["write synced", "name a", "sync f"]


def test_the_folders_on_the_way_are_durable_before_the_answer(tmp_path):
    disk = Noted()

    async def scenario() -> None:
        store = LocalStore(str(tmp_path / "lake"), HandClock(), SystemEntropy(), sync=True, disk=disk)
        try:
            await landed(store, "f/g/a", b"x")
            disk.steps.append("answered")
            await landed(store, "f/g/b", b"x")
        finally:
            await store.close()

    asyncio.run(scenario())
    steps = disk.steps[disk.steps.index("name a") :]
    assert set(steps[: steps.index("answered")]) == {"name a", "sync lake", "sync f", "sync g"}
    # All of them are known to be durable now.
    assert steps[steps.index("answered") + 1 :] == ["write synced", "name b", "sync g"]


class Meeting(RealDisk):
    """A disk whose flushes of one kind wait for one another: they only end if so many are under way together."""

    def __init__(self) -> None:
        self.bytes_meet: threading.Barrier | None = None
        self.names_meet: threading.Barrier | None = None

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        written = super().write_new(path, data, mtime_ns, sync=sync)
        if self.bytes_meet is not None:
            self.bytes_meet.wait(MEETING_S)
        return written

    def sync_folder(self, path: str) -> None:
        if self.names_meet is not None:
            self.names_meet.wait(MEETING_S)
        super().sync_folder(path)


def run_meeting(root: Path, scenario: Callable[[LocalStore, Meeting], Awaitable[None]]) -> None:
    async def whole() -> None:
        disk = Meeting()
        store = LocalStore(str(root), HandClock(), SystemEntropy(), disk=disk)
        try:
            await landed(store, "f/first", b"x")
            await scenario(store, disk)
        finally:
            disk.bytes_meet = disk.names_meet = None
            await store.close()

    asyncio.run(whole())


def test_writes_that_go_out_together_flush_together(tmp_path):
    async def scenario(store: LocalStore, disk: Meeting) -> None:
        folders = ("f", "g", "h", "i")
        for folder in folders[1:]:
            await landed(store, f"{folder}/first", b"x")
        disk.bytes_meet = disk.names_meet = threading.Barrier(len(folders))
        await asyncio.gather(*(landed(store, f"{folder}/a", b"x") for folder in folders))

    run_meeting(tmp_path / "lake", scenario)


def test_new_folders_are_flushed_together_with_the_one_that_the_object_is_in(tmp_path):
    async def scenario(store: LocalStore, disk: Meeting) -> None:
        disk.names_meet = threading.Barrier(4)  # the root, f, g and h
        await landed(store, "f2/g/h/a", b"x")

    run_meeting(tmp_path / "lake", scenario)


def test_a_new_folder_that_cannot_be_flushed_leaves_the_write_in_doubt(tmp_path):
    """The name is given by then, so "nothing happened" would be wrong; and the folder does not count as durable."""

    class Refusing(RealDisk):
        refuses: str | None = None

        def sync_folder(self, path: str) -> None:
            if self.refuses is not None and path.endswith(self.refuses):
                raise OSError(errno.EIO, "input/output error", path)
            super().sync_folder(path)

    disk = Refusing()

    async def scenario() -> None:
        store = LocalStore(str(tmp_path / "lake"), HandClock(), SystemEntropy(), disk=disk)
        try:
            await landed(store, "f/first", b"x")
            disk.refuses = "/f"
            assert isinstance(await store.put("f/g/a", b"x", Absent()), Unknown)
            with pytest.raises(Unavailable):
                await store.put("f/g/a", b"x", Absent())
            disk.refuses = None
            assert isinstance(await store.put("f/g/a", b"x", Absent()), Lost)
        finally:
            await store.close()

    asyncio.run(scenario())


# Folders for clients


def test_a_folder_is_made_for_files_that_others_write(tmp_path):
    async def scenario(store: LocalStore) -> None:
        await store.make_folder("t/metadata/")
        await store.make_folder("t/metadata/")
        assert await names(store) == []
        (tmp_path / "t" / "metadata" / "by-a-client").write_bytes(b"x")
        assert await names(store) == ["t/metadata/by-a-client"]
        with pytest.raises(InvalidInput):
            await store.make_folder("../elsewhere/")

    run(tmp_path, scenario)
