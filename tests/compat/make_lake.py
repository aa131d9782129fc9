"""Writes the lake of a format version, once: `PYTHONPATH=tests python -m tests.compat.make_lake v1`.

It is kept under `lakes/`, and is never written again by newer code: whoever raises the version of a format that projects, runs,
the ledger or the fold write keeps another lake beside the old ones (`test_versions_stored.py` fails without it).
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from tests.compat.lake_story import Known, ToldLake, tell

LAKES = Path(__file__).parent / "lakes"


def write(told: ToldLake, folder: Path) -> None:
    """A lake, and beside it what people remember of it."""
    for name, data in told.objects.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    folder.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(told.known), indent=1) + b"\n")


def read_known(folder: Path) -> Known:
    return msgspec.json.decode(folder.with_suffix(".json").read_bytes(), type=Known)


def main() -> None:
    folder = LAKES / sys.argv[1]
    if folder.exists():
        sys.exit(f"{folder} is stored already: it must stay as it is")
    write(asyncio.run(tell()), folder)


if __name__ == "__main__":
    main()
