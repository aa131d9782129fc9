"""The shop in three minutes: raw tables from elsewhere, a run on Spark, a check that holds back, a late correction.

    .venv/bin/python examples/shop/tour.py            in a temporary folder
    .venv/bin/python examples/shop/tour.py ./lake     in a folder that stays, to look around in afterwards

Every step is a command that anybody can type; this script only types them, and plays the part of the systems that write the raw
tables.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import duckdb
import landing
from duckdb_extensions import import_extension
from pyiceberg.catalog import Catalog, load_catalog

ARCO = Path(sys.executable).with_name("arco")
SHOP = Path(__file__).resolve().parent
HELD_BACK = 3


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m", flush=True)


@contextmanager
def served(root: Path) -> Iterator[Catalog]:
    """A REST catalog on a folder, as other systems see it."""
    command = [str(ARCO), "serve", "--root", str(root), "--port", "0", "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            yield load_catalog("arco", type="rest", uri=line.rpartition(" at ")[2].strip())
        finally:
            server.terminate()


def arco(root: Path, *words: str, expected: int = 0) -> None:
    """Type a command, in the project's folder."""
    print(f"$ arco {' '.join(words)}", flush=True)
    done = subprocess.run([str(ARCO), *words, "--root", str(root)], cwd=SHOP, check=False)
    if done.returncode != expected:
        sys.exit(f"arco {words[0]} ended with {done.returncode}, not {expected}")


def land(root: Path) -> None:
    began = monotonic()
    with served(root) as catalog:
        rows = landing.write(catalog)
    print(f"{rows:,} rows in raw.customers, raw.orders, raw.payments and raw.clicks, {monotonic() - began:.1f} s")


def correct(root: Path) -> None:
    with served(root) as catalog:
        payments, orders = landing.correct(catalog)
    days = ", ".join((*landing.WRONG_DAYS, landing.CHANGED_DAY))
    print(f"{payments:,} payments of {days} overwritten, {orders:,} orders of {landing.LATE_DAY} added")


def read_back(root: Path) -> None:
    """The published tables, by clients that know nothing of Arco."""
    with served(root) as catalog:
        best = catalog.load_table("shop.best_customers").scan(limit=3).to_arrow()
        print("PyIceberg, shop.best_customers:")
        for row in best.select(["name", "country", "orders", "lifetime_value"]).to_pylist():
            print("  ", row)
        for name in ("httpfs", "avro", "iceberg"):
            import_extension(name)
        engine = duckdb.connect()
        engine.execute("LOAD httpfs; LOAD avro; LOAD iceberg;")
        uri = catalog.properties["uri"]
        engine.execute(f"ATTACH 'default/default' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
        print("DuckDB, lake.shop.revenue and what was set aside:")
        print(
            engine.sql("""
            SELECT channel, sum(orders)::BIGINT AS orders, sum(ordered) AS ordered, sum(paid) AS paid
            FROM lake.shop.revenue GROUP BY channel ORDER BY channel""")
        )
        print(
            engine.sql("""
            SELECT arco_rules, count(DISTINCT order_id) AS orders
            FROM lake.shop.orders__quarantine GROUP BY ALL ORDER BY ALL""")
        )


def tour(root: Path) -> None:
    say("1. Other systems write a month of raw tables, with PyIceberg, through the REST catalog")
    land(root)
    say("2. The project: functions and queries. Nothing is started to look at it")
    arco(root, "plan")
    say("3. Run it. Bad rows are set aside; two days of payments have the wrong sign, and their check holds them back")
    arco(root, "run", expected=HELD_BACK)
    say("4. Why is there no revenue for the second third of January?")
    arco(root, "explain", "shop.payments")
    say("5. Those two days are corrected, and late rows come for days that are published. Exactly what they touch is stale")
    correct(root)
    arco(root, "plan", "--why")
    arco(root, "run")
    say("6. Nothing is left to do, and every Iceberg client can read the result")
    arco(root, "run")
    read_back(root)
    say(
        "7. What happened was folded at the end of each run: ask it, and hold it against the tables, the runs and the project"
    )
    arco(root, "lineage", "shop.revenue")
    arco(
        root,
        "query",
        "SELECT source, count(*) AS commits, sum(added_rows)::BIGINT AS rows FROM iceberg_commits GROUP BY 1 ORDER BY 1",
    )
    arco(root, "verify", "--state")


def main() -> None:
    began = monotonic()
    if len(sys.argv) > 1:
        tour(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="arco-shop-") as folder:
            tour(Path(folder) / "lake")
    print(f"\nAll of it took {monotonic() - began:.0f} s. The project is examples/shop; begin your own with: arco init")


if __name__ == "__main__":
    main()
