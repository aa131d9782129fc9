"""The real disk: each call is one step, and says exactly what it did."""

import os
import threading
from pathlib import Path

import pytest

from arco.storage.disk import FileStat, FolderEntry, RealDisk

MTIME_NS = 1_735_689_600_123_456_789


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


@pytest.mark.parametrize("sync", [False, True])
def test_a_new_file_has_its_bytes_and_exactly_its_time(disk, tmp_path, sync):
    path = str(tmp_path / "a")
    stat = disk.write_new(path, b"hello", MTIME_NS, sync=sync)
    assert (stat.mtime_ns, stat.size_bytes) == (MTIME_NS, 5)
    assert disk.stat(path) == stat
    assert disk.read(path) == (b"hello", stat)


def test_a_new_file_never_replaces_one(disk, tmp_path):
    path = str(tmp_path / "a")
    disk.write_new(path, b"first", MTIME_NS, sync=False)
    with pytest.raises(FileExistsError):
        disk.write_new(path, b"second", MTIME_NS, sync=False)
    assert disk.read(path)[0] == b"first"


def test_a_new_file_needs_its_folder(disk, tmp_path):
    with pytest.raises(FileNotFoundError):
        disk.write_new(str(tmp_path / "no" / "a"), b"", MTIME_NS, sync=False)


def test_large_and_empty_files_are_written_whole(disk, tmp_path):
    for number, data in enumerate((b"", b"\0", os.urandom(3_000_000))):
        path = str(tmp_path / str(number))
        disk.write_new(path, data, MTIME_NS, sync=False)
        assert disk.read(path)[0] == data


@pytest.mark.parametrize("sync", [False, True])
def test_a_time_can_be_set_to_the_nanosecond(disk, tmp_path, sync):
    path = str(tmp_path / "a")
    before = disk.write_new(path, b"x", MTIME_NS, sync=False)
    disk.set_mtime(path, MTIME_NS + 1, sync=sync)
    assert disk.stat(path) == FileStat(before.inode, MTIME_NS + 1, 1)


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (8, 100, b"89"),
        (10, 5, b""),
        (99, None, b""),
        (2, 0, b""),
    ],
)
def test_a_part_of_a_file_can_be_read(disk, tmp_path, start, length, expected):
    path = str(tmp_path / "a")
    stat = disk.write_new(path, b"0123456789", MTIME_NS, sync=False)
    assert disk.read(path, start, length) == (expected, stat)


def test_what_is_not_a_file_is_none(disk, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("absent", "folder", "file/below", "dangling", "no/such/folder"):
        assert disk.stat(str(tmp_path / name)) is None
        assert disk.read(str(tmp_path / name)) is None


# Names


def test_a_link_is_a_second_name_for_the_same_file(disk, tmp_path):
    source, target = str(tmp_path / "a"), str(tmp_path / "b")
    stat = disk.write_new(source, b"x", MTIME_NS, sync=False)
    disk.link(source, target)
    assert disk.stat(source) == disk.stat(target) == stat


def test_a_link_never_replaces_a_name(disk, tmp_path):
    source = str(tmp_path / "a")
    disk.write_new(source, b"new", MTIME_NS, sync=False)
    for taken in ("file", "folder", "dangling"):
        target = tmp_path / taken
        {"file": target.touch, "folder": target.mkdir, "dangling": lambda target=target: target.symlink_to("nowhere")}[
            taken
        ]()
        with pytest.raises(FileExistsError):
            disk.link(source, str(target))


def test_a_rename_replaces_in_one_step(disk, tmp_path):
    source, target = str(tmp_path / "a"), str(tmp_path / "b")
    disk.write_new(target, b"old", MTIME_NS, sync=False)
    stat = disk.write_new(source, b"new", MTIME_NS, sync=False)
    disk.rename(source, target)
    assert disk.read(target) == (b"new", stat)
    assert disk.stat(source) is None


def test_an_unlinked_name_is_gone_and_only_once(disk, tmp_path):
    path = str(tmp_path / "a")
    disk.write_new(path, b"x", MTIME_NS, sync=False)
    disk.unlink(path)
    assert disk.stat(path) is None
    with pytest.raises(FileNotFoundError):
        disk.unlink(path)


# Folders


def test_a_folder_is_made_once_and_removed_empty(disk, tmp_path):
    path = str(tmp_path / "folder")
    disk.make_folder(path)
    with pytest.raises(FileExistsError):
        disk.make_folder(path)
    disk.sync_folder(path)
    disk.write_new(f"{path}/a", b"", MTIME_NS, sync=False)
    with pytest.raises(OSError, match="not empty"):
        disk.remove_folder(path)
    disk.unlink(f"{path}/a")
    disk.remove_folder(path)
    assert disk.entries(str(tmp_path)) == []


def test_only_a_folder_can_be_synced(disk, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        disk.sync_folder(str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError):
        disk.sync_folder(str(tmp_path / "absent"))


def test_entries_tell_files_from_folders_and_follow_no_links(disk, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "to-itself").symlink_to("to-itself")
    assert sorted(disk.entries(str(tmp_path)), key=lambda entry: entry.name) == [
        FolderEntry("file", is_folder=False),
        FolderEntry("folder", is_folder=True),
        FolderEntry("to-folder", is_folder=False),
        FolderEntry("to-itself", is_folder=False),
    ]


def test_what_is_no_folder_has_no_entries(disk, tmp_path):
    (tmp_path / "file").touch()
    assert disk.entries(str(tmp_path / "file")) == []
    assert disk.entries(str(tmp_path / "absent")) == []


# Locks


def test_a_lock_is_held_until_the_block_ends_however_it_ends(disk, tmp_path):
    path = str(tmp_path / "lock")

    def fail() -> None:
        with disk.locked(path):
            assert disk.hold(path) is None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    handle = disk.hold(path)
    assert handle is not None
    disk.release(handle)


def test_threads_exclude_each_other(disk, tmp_path):
    path = str(tmp_path / "lock")
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            with disk.locked(path):
                inside += 1
                os.sched_yield()
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_who_holds_a_lock_is_not_waited_for(disk, tmp_path):
    path = str(tmp_path / "lock")
    first = disk.hold(path)
    assert first is not None
    assert disk.hold(path) is None
    disk.release(first)
    second = disk.hold(path)
    assert second is not None
    disk.release(second)


def test_a_lock_on_a_file_that_was_swept_away_is_no_lock(tmp_path):
    path = tmp_path / "lock"

    class SweptMeanwhile(RealDisk):
        """Between opening the file and looking at its name again, somebody removes it."""

        def hold(self, path: str) -> int | None:
            real_stat = os.stat

            def swept(name, *args, **kwargs):
                if name == path:
                    Path(path).unlink()
                return real_stat(name, *args, **kwargs)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "stat", swept)
                return super().hold(path)

    assert SweptMeanwhile().hold(str(path)) is None
    assert not path.exists()


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counting open handles needs /proc")
def test_refused_holds_leave_no_handle_open(disk, tmp_path):
    path = str(tmp_path / "lock")
    held = disk.hold(path)
    assert held is not None
    before = open_handles()
    for _ in range(10):
        assert disk.hold(path) is None
    assert open_handles() == before
    disk.release(held)
