"""`python -m specs`: explore every case, show every counterexample, then the table. Exit code 1 if a case is not as expected."""

import sys
from collections.abc import Sequence
from time import perf_counter, process_time

from specs.cases import ALL, SHORT, Row
from specs.explorer import Result

COLUMNS = ("model", "what", "guard removed", "attempts", "replies lost", "states", "depth", "seconds", "verdict")


def report(rows: Sequence[Row]) -> int:
    """Explore, show, print the table: 1 if a case is not as expected, that is, also if a guard guards nothing."""
    started = perf_counter()
    lines, wrong = [], 0
    for row in rows:
        result = row.run()
        lines.append(_line(row, result))
        wrong += not row.is_as_expected(result)
        _show(row, result)
    print()
    _table(lines)
    states = sum(int(line[COLUMNS.index("states")].replace(",", "")) for line in lines)
    took = f"{perf_counter() - started:.0f} s ({process_time():.0f} s of the processor)"
    print(f"\n{len(rows)} cases, {states:,} states, {took}; {wrong} not as expected")
    return 1 if wrong else 0


def _line(row: Row, result: Result) -> tuple[str, ...]:
    if row.is_as_expected(result):
        verdict = result.broken.partition(":")[0] or ("holds" if result.whole else "holds so far")
    else:
        verdict = f"WRONG: {result.broken or 'nothing fails without this guard'}"
    bound = f"{result.depth}" if result.whole or result.broken else f"{result.depth} (bound)"
    fused = " *" if row.fused else ""
    what = row.what + fused
    return (
        *(row.model, what, row.without or "-", str(row.attempts or "-"), str(row.replies_lost_max)),
        *(f"{result.states:,}", bound, f"{result.seconds:.1f}", verdict),
    )


def _show(row: Row, result: Result) -> None:
    if not result.broken:
        print(f"{row.model}, {row.what}: {result.states:,} states in {result.seconds:.1f} s", flush=True)
        return
    print(f"\nwithout {row.without or 'anything removed'}: {result.broken}")
    for number, step in enumerate(result.trace, 1):
        print(f"  {number:2}. {step}", flush=True)


def _table(lines: list[tuple[str, ...]]) -> None:
    widths = [max(len(line[at]) for line in (COLUMNS, *lines)) for at in range(len(COLUMNS))]
    for line in (COLUMNS, tuple("-" * width for width in widths), *lines):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print("\n* reads of what is held are one step with the conditional write that they are for")
    print("attempts: that one request may begin")
    print("seconds: of the processor")
    print("depth: steps of the longest shortest way, or of the counterexample; (bound): explored no further")


if __name__ == "__main__":
    sys.exit(report(SHORT if "--short" in sys.argv[1:] else ALL))
