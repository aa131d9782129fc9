"""The catalog in a minute: a server on an empty folder, a table made with PyIceberg, read with DuckDB, dropped and restored.

    .venv/bin/python examples/catalog_tour.py

Everything happens in a temporary folder, on a free port of this machine.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb_extensions import import_extension
from pyiceberg.catalog import Catalog, load_catalog

ARCO = Path(sys.executable).with_name("arco")


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m", flush=True)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a catalog on this folder."""
    command = [str(ARCO), "serve", "--root", str(root), "--port", "0", "--log-level", "warning"]
    print(f"$ arco serve --root {root.name} --port 0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            print(line.strip())
            yield line.rpartition(" at ")[2].strip()
        finally:
            server.terminate()


def make(catalog: Catalog) -> None:
    catalog.create_namespace("shop")
    orders = pa.table({"id": [1, 2, 3], "item": ["tea", "cup", "pot"], "cents": [450, 1200, 3900]})
    table = catalog.create_table("shop.orders", schema=orders.schema)
    table.append(orders)
    with table.update_schema() as change:
        change.rename_column("cents", "price_cents")
    table.append(pa.table({"id": [4], "item": ["spoon"], "price_cents": [150]}))
    print(table.scan().to_arrow())
    print(f"{len(table.snapshots())} snapshots, metadata at {Path(table.metadata_location).name}")


def read(uri: str) -> None:
    for name in ("httpfs", "avro", "iceberg"):
        import_extension(name)
    engine = duckdb.connect()
    engine.execute("LOAD httpfs; LOAD avro; LOAD iceberg;")
    engine.execute(f"ATTACH 'default/default' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
    print(engine.sql("SELECT item, price_cents / 100 AS price FROM lake.shop.orders ORDER BY id"))


def shell(*words: str, root: Path) -> None:
    print(f"$ arco {' '.join(words)}")
    subprocess.run([str(ARCO), *words, "--root", str(root)], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="arco-tour-") as folder:
        root = Path(folder) / "lake"
        say("1. A catalog with no database: one process on one folder")
        with served(root) as uri:
            say("2. PyIceberg creates a table, appends, renames a column, appends again")
            make(load_catalog("arco", type="rest", uri=uri))
            say("3. DuckDB reads it through the same catalog")
            read(uri)
        say("4. The server is gone; the names are still there, for the shell")
        shell("ls", "shop", root=root)
        shell("drop", "shop.orders", "--yes", root=root)
        shell("undrop", "shop.orders", root=root)
        shell("history", "shop.orders", root=root)
        shell("verify", root=root)


if __name__ == "__main__":
    main()
