"""What commands say is to be typed next can be typed, whatever tables are called."""

import asyncio
import shlex
from pathlib import Path

import pytest

from stand_ins.lake import Lake
from unit.surface.cli.shell import Shell, arco

__all__ = ["arco"]


async def _write(home: Path) -> None:
    lake = Lake(base_uri=f"file://{home}/lake")
    await lake.namespace("it's")
    await lake.table(("it's",), "täble 日本", commits=1)
    await lake.settle()
    await lake.write_to(home / "lake")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCO_ROOT", "lake")
    asyncio.run(_write(tmp_path))


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("command", [["search", "日本"], ["assets", "it's.täble 日本"]])
def test_what_comes_next_can_be_typed(arco: Shell, command: list[str]) -> None:
    ended = arco(*command, "--fresh")
    (said,) = [line for line in ended.out.splitlines() if line.startswith("Next: ")]
    for typed in said.removeprefix("Next: ").split(", "):
        words = shlex.split(typed)
        assert arco(*words[1:], "--fresh").code == 0
