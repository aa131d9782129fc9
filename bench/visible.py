"""How soon a run is seen: from the end that it wrote down until a fresh read has it, and until it is folded.

The example shop is landed, with fewer rows (a run says as much of few rows as of many), and run once, so that everything is warm:
a server with a fold, its Spark session, its files. Then the project is run again and again, whole (`arco run --force --no-fold`),
while two questions are asked all the time: are all outputs of the run in a fresh read; is it in the folded state (`as_of_run`,
fully ingested). Nobody tells the fold: it looks by its timer, every second here. Prints the table of bench/results/visible.md.
Usage: python bench/visible.py [--rounds 3]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

ARCO = Path(sys.executable).with_name("arco")
SHOP = Path(__file__).resolve().parents[1] / "examples" / "shop"
SIZES = {"CUSTOMERS": 500, "ORDERS": 6_000, "CLICKS": 8_000}
EVERY_S = 1
FRESH_S, FOLDED_S = 1.0, 10.0
BETWEEN_S = 0.05


@contextmanager
def server(root: Path) -> Iterator[str]:
    words = ["serve", "--root", str(root), "--port", "0", "--fold", "--fold-every", str(EVERY_S), "--log-level", "error"]
    with subprocess.Popen([str(ARCO), *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().rpartition(" at ")[2].strip()
        finally:
            process.terminate()


def land(address: str) -> None:
    sys.path.insert(0, str(SHOP))
    import landing  # noqa: PLC0415 - the example's own module
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - after the server

    for name, rows in SIZES.items():
        setattr(landing, name, rows)
    landing.write(load_catalog("arco", type="rest", uri=address))


def ask(api: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"{api}/{path}", timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def run(root: Path, *words: str) -> None:
    command = [str(ARCO), "run", *words, "--no-fold", "--root", str(root)]
    subprocess.run(command, cwd=SHOP, check=False, stdout=subprocess.DEVNULL)  # payments are held back: exit code 3


def newest(api: str) -> Any:
    found = ask(api, "runs?fresh=true&limit=1")["items"]
    return found[0] if found else None


def is_fresh(api: str, known: str | None) -> Any:
    """The run, once a fresh read has its end and everything that it published."""
    its = newest(api)
    if its is None or its["run_id"] == known or its["ended_at"] is None:
        return None
    outputs = ask(api, f"runs/{its['run_id']}/outputs?fresh=true")["outputs"]
    made = len({one["task_id"] for one in outputs})
    return its if made >= its["task_states"].get("succeeded", 0) else None


def is_folded(api: str, run_id: str) -> bool:
    found = ask(api, f"catalog/snapshot?as_of_run={run_id}")
    return found is not None and found["ingestion"] == "fully_ingested"


def until(what: Callable[[], Any]) -> tuple[Any, float]:
    while True:
        found = what()
        if found:
            return found, time.time()
        time.sleep(BETWEEN_S)


def measured(api: str, root: Path) -> tuple[float, float]:
    before = newest(api)
    running = threading.Thread(target=run, args=(root, "--force"))
    running.start()
    its, fresh_at = until(lambda: is_fresh(api, before and before["run_id"]))
    _, folded_at = until(lambda: is_folded(api, its["run_id"]))
    running.join()
    ended = datetime.fromisoformat(its["ended_at"]).timestamp()
    print(f"a round: {fresh_at - ended:.2f} s, {folded_at - ended:.2f} s", file=sys.stderr, flush=True)
    return fresh_at - ended, folded_at - ended


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="arco-visible-") as folder:
        root = Path(folder) / "lake"
        with server(root) as address:
            api = address.removesuffix("/iceberg") + "/api/v1"
            land(address)
            run(root)
            first = newest(api)["run_id"]
            until(lambda: is_folded(api, first))
            load = os.getloadavg()[0]
            found = [measured(api, root) for _ in range(rounds)]
    print(f"| what | s (least to greatest of {rounds}) | goal |")
    print("|---|---|---|")
    for what, place, goal in (("in a fresh read, with all outputs", 0, FRESH_S), ("in the folded state", 1, FOLDED_S)):
        took = sorted(one[place] for one in found)
        middle = took[len(took) // 2]
        said = "met" if took[-1] <= goal else "MISSED"
        print(f"| {what} | {middle:.2f} ({took[0]:.2f} to {took[-1]:.2f}) | at most {goal:.0f} s: {said} |")
    print(f"\nLoad of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
