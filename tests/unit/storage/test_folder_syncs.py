"""Syncs of one folder by many threads: as few as can be, and never one that began before the name was given."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from arco.storage.folder_syncs import FolderSyncs

PATIENCE_S = 10.0


class SlowDisk:
    """A disk whose syncs end when the test says so. A sync makes durable what was named when it began."""

    def __init__(self) -> None:
        self.named: dict[str, set[str]] = {}
        self.durable: set[str] = set()
        self.syncs: list[str] = []
        self.failing = False
        self._lock = threading.Lock()
        self._began = threading.Condition(self._lock)
        self._may_end: list[threading.Event] = []

    def name(self, folder: str, name: str) -> None:
        with self._lock:
            self.named.setdefault(folder, set()).add(name)

    def sync(self, folder: str) -> None:
        with self._lock:
            seen = set(self.named.get(folder, set()))
            self.syncs.append(folder)
            may_end = threading.Event()
            self._may_end.append(may_end)
            self._began.notify_all()
        assert may_end.wait(PATIENCE_S)
        if self.failing:
            raise OSError(errno.EIO, "input/output error", folder)
        with self._lock:
            self.durable |= seen

    def wait_for(self, syncs: int) -> None:
        with self._lock:
            assert self._began.wait_for(lambda: len(self.syncs) >= syncs, PATIENCE_S)

    def end(self, number: int) -> None:
        self._may_end[number].set()


class Threads:
    """Writers that give a name and sync its folder, each on a thread of its own."""

    def __init__(self, disk: SlowDisk) -> None:
        self.disk = disk
        self.shared = FolderSyncs(disk.sync)
        self._threads = ThreadPoolExecutor(64)

    def write(self, folder: str, name: str) -> "Future[bool]":
        self.disk.name(folder, name)
        return self._threads.submit(self._synced, folder, name)

    def _synced(self, folder: str, name: str) -> bool:
        self.shared.sync(folder)
        return name in self.disk.durable

    def until(self, condition: Callable[[], bool]) -> None:
        """Until the other threads are where the test wants them; nothing rests on how long it takes."""
        pause = threading.Event()
        for _ in range(int(PATIENCE_S * 1000)):
            if condition():
                return
            pause.wait(0.001)
        raise AssertionError("the threads never got there")

    def close(self) -> None:
        self._threads.shutdown(wait=True)


@pytest.fixture
def threads():
    threads = Threads(SlowDisk())
    yield threads
    threads.close()


def waiting(threads: Threads, folder: str) -> bool:
    return folder in threads.shared._following


def test_a_name_given_during_a_sync_waits_for_the_next(threads: Threads) -> None:
    first = threads.write("f", "a")
    threads.disk.wait_for(1)
    second = threads.write("f", "b")
    threads.until(lambda: waiting(threads, "f"))
    threads.disk.end(0)
    assert first.result(PATIENCE_S)
    threads.disk.wait_for(2)
    assert not second.done()
    threads.disk.end(1)
    assert second.result(PATIENCE_S)


def test_all_who_wait_share_one_sync(threads: Threads) -> None:
    first = threads.write("f", "first")
    threads.disk.wait_for(1)
    leader = threads.write("f", "0")
    threads.until(lambda: waiting(threads, "f"))
    others = [threads.write("f", str(number)) for number in range(1, 40)]
    following = threads.shared._following["f"]
    threads.until(lambda: len(following.ended._cond._waiters) == len(others))  # type: ignore[attr-defined]
    threads.disk.end(0)
    threads.disk.wait_for(2)
    threads.disk.end(1)
    assert all(one.result(PATIENCE_S) for one in (first, leader, *others))
    assert threads.disk.syncs == ["f", "f"]


def test_folders_do_not_wait_for_each_other(threads: Threads) -> None:
    one, other = threads.write("f", "a"), threads.write("g", "b")
    threads.disk.wait_for(2)
    assert sorted(threads.disk.syncs) == ["f", "g"]
    threads.disk.end(0)
    threads.disk.end(1)
    assert one.result(PATIENCE_S)
    assert other.result(PATIENCE_S)


def test_a_sync_that_fails_fails_for_all_who_shared_it_and_for_nobody_after(threads: Threads) -> None:
    first = threads.write("f", "a")
    threads.disk.wait_for(1)
    leader = threads.write("f", "b")
    threads.until(lambda: waiting(threads, "f"))
    threads.disk.end(0)
    assert first.result(PATIENCE_S)
    threads.disk.wait_for(2)
    third = threads.write("f", "c")
    threads.until(lambda: waiting(threads, "f"))
    threads.disk.failing = True
    threads.disk.end(1)
    with pytest.raises(OSError, match="input/output error"):
        leader.result(PATIENCE_S)
    threads.disk.wait_for(3)
    threads.disk.failing = False
    threads.disk.end(2)
    assert third.result(PATIENCE_S)


def test_a_thread_that_is_gone_does_not_make_others_believe(threads: Threads) -> None:
    """Whatever ends the one that syncs, who waited for it hears that nothing is known to be durable."""
    began, may_end, errors = threading.Event(), threading.Event(), []

    def sync(folder: str) -> None:
        if began.is_set():
            raise KeyboardInterrupt
        began.set()
        assert may_end.wait(PATIENCE_S)

    shared = FolderSyncs(sync)

    def ask() -> None:
        try:
            shared.sync("f")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it must be one
            errors.append(type(error))

    first = threading.Thread(target=ask)
    first.start()
    assert began.wait(PATIENCE_S)
    rest = [threading.Thread(target=ask) for _ in range(3)]
    for one in rest:
        one.start()
    threads.until(lambda: "f" in shared._following)
    may_end.set()
    for one in (first, *rest):
        one.join(PATIENCE_S)
    assert len(errors) == 3
    assert KeyboardInterrupt in errors
