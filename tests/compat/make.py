"""Writes the root of a format version, once: `python -m tests.compat.make v1`.

A stored root is what users have in their buckets. It is never written again by newer code: a new format version gets a root of
its own beside the old ones, and the tests open them all.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from tests.compat.story import Asked, Told, tell

HERE = Path(__file__).parent


class Beside(msgspec.Struct, frozen=True):
    """What its clients know of a root: the requests that they may send again, and what time it is."""

    at_ms: int
    asked: list[Asked]


def write(told: Told, folder: Path) -> None:
    """A root, and beside it what its clients know."""
    for name, data in told.objects.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    beside = msgspec.json.format(msgspec.json.encode(Beside(told.at_ms, told.asked)), indent=1)
    folder.with_suffix(".json").write_bytes(beside + b"\n")


def read_beside(folder: Path) -> Beside:
    return msgspec.json.decode(folder.with_suffix(".json").read_bytes(), type=Beside)


def main() -> None:
    folder = HERE / sys.argv[1]
    if folder.exists():
        sys.exit(f"{folder} is stored already: it must stay as it is")
    write(asyncio.run(tell()), folder)


if __name__ == "__main__":
    main()
