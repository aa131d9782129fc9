"""Crash points: silent in production, and a place to die in a test."""

from collections.abc import Iterator

import pytest

from arco.kernel import crash_points


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    crash_points.install(None)


def test_without_a_hook_reaching_a_point_does_nothing():
    assert crash_points.reach("commit.swung") is None


def test_a_hook_hears_every_point_in_order():
    heard: list[str] = []
    crash_points.install(heard.append)
    for point in ("commit.staged", "commit.swung", "commit.staged"):
        crash_points.reach(point)
    assert heard == ["commit.staged", "commit.swung", "commit.staged"]


def test_none_restores_silence():
    heard: list[str] = []
    crash_points.install(heard.append)
    crash_points.install(None)
    crash_points.reach("commit.swung")
    assert heard == []


def test_a_later_hook_replaces_the_earlier_one():
    first: list[str] = []
    second: list[str] = []
    crash_points.install(first.append)
    crash_points.install(second.append)
    crash_points.reach("commit.swung")
    assert (first, second) == ([], ["commit.swung"])


def test_what_a_hook_raises_ends_the_protocol_there():
    class KilledHereError(BaseException):
        pass

    def kill(point: str) -> None:
        if point == "commit.swung":
            raise KilledHereError

    steps: list[str] = []

    def protocol() -> None:
        for step in ("staged", "swung", "announced"):
            steps.append(step)
            crash_points.reach(f"commit.{step}")

    crash_points.install(kill)
    with pytest.raises(KilledHereError):
        protocol()
    assert steps == ["staged", "swung"]
