"""A stored lake, looked at by every room: what the tests of damage share."""

from collections.abc import Callable
from pathlib import Path

from arco.fold.heads import Heads
from arco.fold.verify_fold import verify_fold
from arco.ledger.verify_ledger import verify_ledger
from arco.storage.findings import Report
from arco.storage.looking import Look
from tests.compat.opened_lake import Lake, Process, with_lake
from tests.compat.story import SCOPE

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


def looked_over(lake: Lake) -> Report:
    async def look(process: Process) -> Report:
        report = Report()
        one = Look(process.store, SCOPE, report)
        await verify_fold(one, Heads(process.store, SCOPE, process.clock, process.entropy))
        await verify_ledger(one)
        await one.unknown()
        return report

    report: Report = with_lake(lake, look)
    return report


def damaged(lake: Lake, part: str, damage: Damage) -> str:
    """Damage one object whose name has a part in it; its name."""
    path: Path = lake.one(part)
    path.write_bytes(damage(path.read_bytes()))
    return path.relative_to(lake.folder).as_posix()
