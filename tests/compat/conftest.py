"""Every stored root, and the one that today's code leaves."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.compat.make import HERE, read_beside, write
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
