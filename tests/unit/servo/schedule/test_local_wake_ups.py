"""Wake-ups on one machine: everybody who listens hears, nobody waits, and the dead are cleared away."""

import asyncio
import socket
from pathlib import Path

import pytest

from arco.kernel.entropy import SystemEntropy
from arco.servo.schedule.local_wake_ups import LocalWakeUps


def wake_ups(root: Path) -> LocalWakeUps:
    return LocalWakeUps(root, SystemEntropy(), looks_every_s=2.0)


async def heard_by(*listeners: LocalWakeUps) -> list[asyncio.Queue[str]]:
    queues: list[asyncio.Queue[str]] = [asyncio.Queue() for _ in listeners]
    for one, queue in zip(listeners, queues, strict=True):
        one.listen(queue.put_nowait)
    return queues


@pytest.mark.parametrize("folder", ["lake", "a_folder_with_a_name_that_is_far_too_long_for_an_address" * 3])
def test_everybody_who_listens_is_told(tmp_path: Path, folder: str) -> None:
    async def story() -> None:
        one, two, teller = (wake_ups(tmp_path / folder) for _ in range(3))
        queues = await heard_by(one, two)
        assert one.is_listening
        teller.tell("01KMTD7Z0V8F39EYJT8G9C1DD4")
        assert [await queue.get() for queue in queues] == ["01KMTD7Z0V8F39EYJT8G9C1DD4"] * 2
        for each in (one, two, teller):
            each.close()
        assert list((tmp_path / folder / ".arco" / "wake").iterdir()) == []

    asyncio.run(story())


def test_the_sockets_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / ".arco" / "wake"
        folder.mkdir(parents=True)
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        dead.bind(str(folder / "1-00.sock"))
        dead.close()
        teller = wake_ups(tmp_path)
        teller.tell("*")
        teller.close()
        assert list(folder.iterdir()) == []

    asyncio.run(story())


def test_who_is_told_more_than_it_can_hear_holds_nobody_up(tmp_path: Path) -> None:
    async def story() -> None:
        deaf, teller = wake_ups(tmp_path), wake_ups(tmp_path)
        (queue,) = await heard_by(deaf)
        for number in range(5000):
            teller.tell(f"run {number}")
        assert (await queue.get()) == "run 0"
        deaf.close()
        teller.close()

    asyncio.run(story())


def test_a_root_without_sockets_is_no_failure(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / ".arco").write_text("a file where the folder would be")
        one = wake_ups(tmp_path)
        one.listen(lambda _: None)
        one.tell("*")
        assert not one.is_listening
        one.close()

    asyncio.run(story())
