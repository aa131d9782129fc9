"""`arco init` writes a project that is right at once, and never writes over anything."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from arco.surface.cli.projects import read_project

from .shell import Shell, arco

__all__ = ["arco"]

ROOT = Path(__file__).resolve().parents[4]
FILES = [
    ".gitignore",
    "README.md",
    "arco.toml",
    "assets/orders.py",
    "assets/revenue.sql",
    "conftest.py",
    "tests/test_assets.py",
]


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    return tmp_path


def test_a_project_is_written_and_is_right(arco: Shell, here: Path) -> None:
    ended = arco("init", "my-shop")
    assert ended.code == 0
    assert written(here / "my-shop") == FILES
    assert [line for line in ended.out.splitlines() if line.startswith("wrote")] == [
        f"wrote my-shop/{one}" for one in FILES
    ]
    assert "cd my-shop" in ended.out
    assert "arco run" in ended.out
    project = read_project("my-shop").load()
    assert [str(key) for key in project.graph.order] == ["my_shop.orders_raw", "my_shop.orders", "my_shop.revenue"]
    assert project.name == "my_shop"
    assert not [one for one in FILES if "{{" in (here / "my-shop" / one).read_text()]


def test_what_is_written_is_tidy(arco: Shell, here: Path) -> None:
    arco("init", "shop")
    for check in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, "--isolated", "."],
            cwd=here / "shop",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_here_under_a_name(arco: Shell, here: Path) -> None:
    (here / "notes.txt").write_text("mine")
    ended = arco("init", "--name", "sales")
    assert ended.code == 0
    assert written(here) == sorted([*FILES, "notes.txt"])
    assert "cd " not in ended.out
    assert read_project().name == "sales"


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten(arco: Shell, here: Path, name: str) -> None:
    (here / "shop" / name).parent.mkdir(parents=True)
    (here / "shop" / name).write_text("mine")
    ended = arco("init", "shop")
    assert ended.code == 2
    assert ended.err == f"arco: shop/{name} is there already: nothing was written; choose an empty folder\n"
    assert written(here / "shop") == [name]
    assert (here / "shop" / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("folder", "name"),
    [("2025", "project_2025"), ("Ünïcode Shop!", "n_code_shop"), ("UPPER", "upper"), ("a.b", "a_b"), ("---", "project")],
)
def test_the_name_is_made_of_the_folders(arco: Shell, here: Path, folder: str, name: str) -> None:
    assert arco("init", f"./{folder}").code == 0
    assert read_project(folder).name == name
    assert arco("validate", "-p", folder).code == 0


@pytest.mark.parametrize("name", ["Shop", "my-shop", "", "1a", "x" * 200])
def test_a_name_that_cannot_be_is_refused(arco: Shell, here: Path, name: str) -> None:
    ended = arco("init", "shop", "--name", name)
    assert ended.code == 2
    assert "cannot be a project's name: give --name" in ended.err
    assert written(here) == []


def test_a_folder_that_is_a_file(arco: Shell, here: Path) -> None:
    (here / "shop").write_text("mine")
    ended = arco("init", "shop")
    assert ended.code == 2
    assert "cannot be written: " in ended.err
    assert ended.err.count("\n") == 1


def test_the_wheel_has_the_templates(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    kept = [name for name in names if name.startswith("arco/surface/cli/template/")]
    assert len(kept) == len(FILES)
    assert all(name.endswith(".template") for name in kept)
