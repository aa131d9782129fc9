"""Every stored root and every stored lake, and those that today's code leaves."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.compat import lake_story, make_lake
from tests.compat.make import HERE, read_beside, write
from tests.compat.opened_lake import Lake
from tests.compat.roots import STORED, Root
from tests.compat.story import tell


@pytest.fixture(params=[*STORED, "today"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    folder = tmp_path / request.param
    if request.param == "today":
        write(asyncio.run(tell()), folder)
    else:
        shutil.copytree(HERE / request.param, folder)
        shutil.copy(HERE / f"{request.param}.json", tmp_path)
    return Root(folder, read_beside(folder))


@pytest.fixture(params=[*sorted(path.name for path in make_lake.LAKES.iterdir() if path.is_dir()), "today"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    folder = tmp_path / request.param
    if request.param == "today":
        make_lake.write(asyncio.run(lake_story.tell()), folder)
    else:
        shutil.copytree(make_lake.LAKES / request.param, folder)
        shutil.copy(make_lake.LAKES / f"{request.param}.json", tmp_path)
    return Lake(folder, make_lake.read_known(folder))
