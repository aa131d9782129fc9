"""DuckDB with its iceberg extension, loaded from installed packages: nothing is downloaded."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

EXTENSIONS = ("httpfs", "avro", "iceberg")


@contextmanager
def duckdb_session(folder: Path) -> Iterator["Duck"]:
    """A connection; the folder keeps the extensions."""
    with duckdb.connect(config={"extension_directory": str(folder)}) as connection:
        for name in EXTENSIONS:
            connection.execute(f"INSTALL '{extension_file(name)}'")
            connection.execute(f"LOAD {name}")
        yield Duck(connection)


def extension_file(name: str) -> Path:
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.glob(f"extensions/v*/{name}.duckdb_extension"))


class Duck:
    """What a user types: statements in, rows out."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def attach(self, name: str, uri: str, *, warehouse: str = "default/default") -> None:
        """A catalog as the documents describe it."""
        options = f"TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none', SUPPORT_NESTED_NAMESPACES true"
        self(f"ATTACH '{warehouse}' AS {name} ({options})")

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def one(self, statement: str) -> Any:
        ((value,),) = self(statement)
        return value

    def column(self, statement: str) -> list[Any]:
        return sorted(row[0] for row in self(statement))
