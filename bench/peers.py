"""Planning and scheduling beside a peer, in one run: the same chains of ten assets that do nothing, in Arco and in Dagster.

Both define their assets and plan them; then both run some, without any work in them: Dagster in process on its own instance,
Arco with its real log, claims, outbox and ledger on a store in memory. The two do not do the same for it; the table says how they
compare where they can be compared. Dagster is installed apart from Arco, from pinned hashes. Each measurement is a process of its
own; medians of the rounds.
Usage: python bench/peers.py [--assets 1000] [--runs 100] [--rounds 3]
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
Found = dict[str, dict[str, float]]


def dagster_python() -> str | None:
    """A Python with Dagster; None if it cannot be installed here."""
    script = HERE.parent / "tests" / "conformance" / "venv.sh"
    done = subprocess.run([str(script), "peers"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"Dagster is not there, and not measured: {done.stderr.strip().splitlines()[-1]}")
        return None
    return done.stdout.strip()


def measured(command: list[str]) -> Found:
    found: Found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assets", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sizes = [str(given.assets), str(given.runs)]
    commands = {"Arco": [sys.executable, str(HERE / "peer_arco.py"), *sizes]}
    python = dagster_python()
    if python is not None:
        commands["Dagster"] = [python, str(HERE / "peer_dagster.py"), *sizes]
    rounds = [{name: measured(command) for name, command in commands.items()} for _ in range(given.rounds)]
    print(f"| what | tool | wall s | processor s | beside Arco |\n|---|---|---|---|---|\n{table(rounds, commands, given)}")


def table(rounds: list[dict[str, Found]], tools: dict[str, list[str]], given: argparse.Namespace) -> str:
    titles = {"plan": f"define and plan {given.assets:,} assets", "run": f"run {given.runs:,} tasks that do nothing"}
    lines = []
    for what, title in titles.items():
        base = statistics.median(one["Arco"][what]["processor_s"] for one in rounds)
        for name in tools:
            wall = statistics.median(one[name][what]["wall_s"] for one in rounds)
            processor = statistics.median(one[name][what]["processor_s"] for one in rounds)
            lines.append(f"| {title} | {name} | {wall:.2f} | {processor:.2f} | {processor / base:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
