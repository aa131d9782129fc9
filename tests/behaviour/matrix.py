"""Print the contract as a matrix: cases down, stores across. `make contract-matrix` runs it."""

import asyncio
import sys
import time
import traceback

from behaviour.adapters import ADAPTERS, cases_of, grounds
from servers.launch import ServerMissing


def run(adapter: str) -> dict[str, str]:
    """A mark per case: ok or FAIL."""
    marks: dict[str, str] = {}
    with grounds(adapter) as give:
        for case in cases_of(adapter):
            try:
                asyncio.run(case(give()))
                marks[case.__name__] = "ok"
            except Exception:  # noqa: BLE001 - a failed case is a mark in the matrix, with its story on the error stream
                traceback.print_exc()
                marks[case.__name__] = "FAIL"
    return marks


def main() -> int:
    table: dict[str, dict[str, str]] = {}
    for adapter in ADAPTERS:
        started = time.monotonic()
        try:
            table[adapter] = run(adapter)
        except ServerMissing as missing:
            print(f"{adapter}: not run: {missing}")
            continue
        print(f"{adapter}: {len(table[adapter])} cases in {time.monotonic() - started:.0f} s", flush=True)
    names = list(dict.fromkeys(name for marks in table.values() for name in marks))
    width = max(len(name) for name in names)
    print(f"\n{'case':<{width}}  " + "  ".join(f"{adapter:^9}" for adapter in table))
    for name in names:
        print(f"{name:<{width}}  " + "  ".join(f"{marks.get(name, '-'):^9}" for marks in table.values()))
    failed = sum(mark == "FAIL" for marks in table.values() for mark in marks.values())
    passed = sum(mark == "ok" for marks in table.values() for mark in marks.values())
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
