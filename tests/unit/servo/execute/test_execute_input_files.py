"""Which files a pattern means, and when its fingerprint changes."""

import os
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput, TooLarge
from arco.servo.execute import input_files
from arco.servo.execute.input_files import list_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.json", "deep/b.json", "deep/er/c.json", "deep/d.csv", "_SUCCESS", "deep/.hidden.json", "day=1/_e.json"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(name)
    return tmp_path


def names(folder: Path, pattern: str) -> list[str]:
    return [Path(one).relative_to(folder.resolve()).as_posix() for one in list_files(pattern, folder).files]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("in/*.json", ["in/a.json"]),
        ("in/**/*.json", ["in/a.json", "in/deep/b.json", "in/deep/er/c.json"]),
        ("in/deep/*", ["in/deep/b.json", "in/deep/d.csv", "in/deep/er/c.json"]),
        ("in/deep", ["in/deep/b.json", "in/deep/d.csv", "in/deep/er/c.json"]),
        ("in/[ab].json", ["in/a.json"]),
        ("in/none/*.json", []),
        ("in/_SUCCESS", []),
    ],
)
def test_a_pattern_means_these_files(folder, pattern, expected):
    assert names(folder, pattern) == expected


def test_an_absolute_pattern_and_a_file_address_mean_the_same(folder):
    expected = list_files("in/*.json", folder)
    assert list_files(f"{folder}/in/*.json", Path("/")).files == expected.files
    assert list_files(f"file://{folder}/in/*.json", folder) == expected


def test_the_fingerprint_is_of_names_below_the_folder_sizes_and_times(folder, tmp_path_factory):
    before = list_files("in/*.json", folder)
    assert list_files("in/*.json", folder) == before
    assert before.bytes == len("a.json")
    stat = (folder / "in" / "a.json").stat()
    os.utime(folder / "in" / "a.json", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    changed = list_files("in/*.json", folder)
    assert changed.fingerprint != before.fingerprint
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "in").mkdir()
    (elsewhere / "in" / "a.json").write_text("a.json")
    os.utime(elsewhere / "in" / "a.json", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert list_files("in/*.json", elsewhere).fingerprint == before.fingerprint, "another checkout, the same files"


def test_too_many_files_are_refused(folder, monkeypatch):
    monkeypatch.setattr(input_files, "INPUT_FILES_MAX", 2)
    with pytest.raises(TooLarge, match="means 3 files"):
        list_files("in/**/*.json", folder)


def test_a_bucket_must_be_named(folder):
    with pytest.raises(InvalidInput, match="names no bucket"):
        list_files("s3://*/x.json", folder)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*.json", "a.json", True),
        ("*.json", "a/b.json", False),
        ("**/*.json", "b.json", True),
        ("**/*.json", "x/y/b.json", True),
        ("x/**", "x/y/z", True),
        ("x/**/z", "x/z", True),
        ("day=[0-9]/?.json", "day=1/a.json", True),
        ("day=[!0-9]/?.json", "day=1/a.json", False),
        ("a.json", "axjson", False),
    ],
)
def test_patterns_of_a_bucket_are_those_of_a_folder(pattern, name, matches):
    assert input_files._matches(pattern.split("/"), name.split("/")) is matches
