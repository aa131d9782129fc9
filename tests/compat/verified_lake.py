"""A folder of stored objects, looked at by every room: what the tests of damage share."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from arco.catalog.catalog import Catalog
from arco.kernel.entropy import SeededEntropy
from arco.storage.findings import Report
from arco.storage.local import LocalStore
from arco.surface.cli.looking_over import look_over
from tests.compat.story import BASE_URI, SCOPE
from tests.stand_ins.hand_clock import HandClock

Damage = Callable[[bytes], bytes]


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


def one_bit_flipped(data: bytes) -> bytes:
    """In the middle, where it says something."""
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def of_another_version(data: bytes) -> bytes:
    assert b'"format_version":1' in data
    return data.replace(b'"format_version":1', b'"format_version":99', 1)


def no_text(data: bytes) -> bytes:
    """A byte that no text has."""
    return data[: len(data) // 2] + b"\xff" + data[len(data) // 2 + 1 :]


def looked_over(folder: Path) -> Report:
    async def look() -> Report:
        clock, report = HandClock(), Report()
        store = LocalStore(str(folder), clock, SeededEntropy("reader"))
        try:
            await look_over(Catalog.open(store, BASE_URI, SCOPE, clock, SeededEntropy("reader")), report)
        finally:
            await store.close()
        return report

    return asyncio.run(look())


def found_in(folder: Path) -> list[tuple[str, str]]:
    """Of each finding its code and the object."""
    return [(one.code, one.subject) for one in looked_over(folder).findings]


def object_of(folder: Path, part: str) -> Path:
    """The first object whose name has a part in it."""
    return min(path for path in folder.rglob("*") if path.is_file() and part in path.as_posix())


def damaged(folder: Path, part: str, damage: Damage) -> str:
    """Damage one object; its name."""
    path = object_of(folder, part)
    path.write_bytes(damage(path.read_bytes()))
    return path.relative_to(folder).as_posix()
