"""A folder with the small world published in it in three parts, for the commands that ask it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.state.published_state import publish_in_folder
from fixtures.state.shop_story import told
from fixtures.state.state_world import NOW_MS


@dataclass(frozen=True)
class Lake:
    root: Path
    snapshots: tuple[str, ...]

    @property
    def at(self) -> tuple[str, ...]:
        """The flags for the whole story, judged at its own time."""
        return ("--root", str(self.root), "--snapshot", self.snapshots[-1])

    @property
    def now(self) -> tuple[str, ...]:
        return ("--root", str(self.root))


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("lake")
    return Lake(root, tuple(asyncio.run(publish_in_folder(root, told(), NOW_MS, parts=3))))
