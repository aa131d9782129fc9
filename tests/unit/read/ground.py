"""Readers of the small world: whole in a base, spread over layers, and with a tail."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from arco.read.reader import Reader
from fixtures.state.shop_story import told
from fixtures.state.state_world import World, opened

T = TypeVar("T")


class Ground:
    """The world and a reader of it. Questions are asked one after the other."""

    def __init__(self, world: World, reader: Reader) -> None:
        self.world, self.reader = world, reader

    def ask(self, question: Callable[..., Awaitable[T]], *about: Any, **more: Any) -> T:
        return self._loop.run(question(self.reader, *about, **more))  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        self._loop = asyncio.Runner()
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()
        self._loop.close()


@pytest.fixture(scope="session", params=["base", "layers", "tail"])
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    world, folder = told(), Path(tmp_path_factory.mktemp("state"))
    layout: dict[str, Any] = {"base": {}, "layers": {"layers": 3}, "tail": {"layers": 4, "tail": True}}[request.param]
    with Ground(world, opened(world, folder, **layout)) as standing:
        yield standing
