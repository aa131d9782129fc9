"""What others rely on, held against the last release: the description of the API and the schemas of events.

    python tools/contracts.py            say what would break somebody, a line each; exit 1 if anything would
    python tools/contracts.py --write    write contracts/*.json as they are now

The last release is the last tag; while there is none, what is committed stands for it. Whatever is added passes, and must be
written down. What must never enter: what breaks somebody (`contract_breaks.py`), and how the descriptions are made.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.ledger.event_types import json_schemas
from arco.storage.memory import MemoryStore
from arco.surface.http.api import api_endpoints
from arco.surface.http.openapi import document
from arco.surface.http.server_state import ServerState
from contract_breaks import Json, api_breaks, event_breaks

ROOT = Path(__file__).resolve().parents[1]
WRITE = "python tools/contracts.py --write"


def openapi_now() -> Json:
    clock, entropy = SystemClock(), SeededEntropy(1)
    state = ServerState(MemoryStore(clock), "memory://", {}, LocationPolicy(), clock, entropy)
    return document(api_endpoints(state))


@dataclass(frozen=True)
class Contract:
    """One description: where it lies, what it is now, and what breaks it."""

    path: str
    now: Callable[[], Json]
    breaks: Callable[[Json, Json], list[str]]


CONTRACTS = (
    Contract("contracts/openapi.json", openapi_now, api_breaks),
    Contract("contracts/events.json", json_schemas, event_breaks),
)


def last_tag(root: Path) -> str | None:
    """The newest release that this state descends from, or None; also where there is no repository."""
    try:
        said = subprocess.run(
            ["git", "describe", "--tags", "--abbrev=0"], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return said.stdout.strip() or None


def released(root: Path, path: str, tag: str | None) -> Json | None:
    """A description as the last release had it; as it is committed where no release has it."""
    if tag is not None:
        shown = subprocess.run(["git", "show", f"{tag}:{path}"], cwd=root, capture_output=True, check=False)
        if shown.returncode == 0:
            found: Json = msgspec.json.decode(shown.stdout)
            return found
    stored = root / path
    if not stored.exists():
        return None
    kept: Json = msgspec.json.decode(stored.read_bytes())
    return kept


def complaints(root: Path, contract: Contract) -> Iterator[str]:
    now, tag = contract.now(), last_tag(root)
    before = released(root, contract.path, tag)
    if before is not None:
        yield from (f"{contract.path}: {line} (since {tag or 'it was written'})" for line in contract.breaks(before, now))
    stored = root / contract.path
    if not stored.exists() or stored.read_bytes() != written(now):
        yield f"{contract.path} is not what the code says: run `{WRITE}` and commit it"


def written(now: Json) -> bytes:
    return msgspec.json.format(msgspec.json.encode(now, order="deterministic"), indent=1) + b"\n"


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        for contract in CONTRACTS:
            (ROOT / contract.path).parent.mkdir(exist_ok=True)
            (ROOT / contract.path).write_bytes(written(contract.now()))
        return 0
    if arguments:
        print(f"either nothing or --write, not {' '.join(arguments)}", file=sys.stderr)
        return 2
    found = [line for contract in CONTRACTS for line in complaints(ROOT, contract)]
    print("\n".join(found) or "The API and the events keep what they promised.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
