"""A root whose ledger was told of its names, as version 1 of the mark leaves it: stored in `told/`, and opened by today's code.

python -m tests.compat.told_story    write it; only for a new version, beside the old one
"""

import asyncio
from pathlib import Path

from arco.catalog.telling import Teller
from arco.kernel.entropy import SeededEntropy
from stand_ins.lake import SCOPE, Lake

STORED = Path(__file__).resolve().parent / "told" / "v1"


async def tell() -> dict[str, bytes]:
    """Two tables, one of them dropped, and the ledger told of it: every object by its name."""
    lake = Lake("told")
    await lake.namespace("shop")
    await lake.table(("shop",), "orders")
    await lake.other(("shop",), "gone")
    await lake.drop((("shop",), "gone"))
    await lake.settle()
    await Teller(lake.store, SCOPE, lake.clock, SeededEntropy("teller")).tell()
    return {key: await lake.bytes_of(key) for key in await lake.keys()}


def write() -> None:
    for key, data in asyncio.run(tell()).items():
        path = STORED / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write()
