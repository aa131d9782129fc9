"""Engines that write while servers are killed: PyIceberg and Spark append rows, and PyIceberg changes the accounts of the bank.

They are what users run, with the retries that they come with. Each row has a number of its own. A write that was acknowledged
is in the table once; one that ended in an error may be there, once.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, RESTError
from requests.exceptions import RequestException

from .server_kill_load import ACCOUNTS, BANK, ENGINES
from .spark_session import Spark

SCHEMA = pa.schema([("a", pa.int64())])


@dataclass
class Written:
    """The rows of one engine, by what it was told of each."""

    acknowledged: list[int] = field(default_factory=list)
    in_doubt: list[int] = field(default_factory=list)

    def complaints(self, engine: str, found: list[int]) -> list[str]:
        counted = Counter(found)
        lost = [row for row in self.acknowledged if not counted[row]]
        doubled = [row for row, count in counted.items() if count > 1]
        strange = sorted(set(found) - set(self.acknowledged) - set(self.in_doubt))
        said = (("were acknowledged and are gone", lost), ("are there twice", doubled), ("were never written", strange))
        return [f"rows {rows} of {engine} {what}" for what, rows in said if rows]


class Engines:
    """All engines of a run, at one address. They work in threads: their libraries wait."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stopping = False
        self.written: dict[str, Written] = {}
        self.bank_changes = 0

    def stop(self) -> None:
        self._stopping = True

    async def run(self, spark: Spark | None, begun: asyncio.Event) -> None:
        await begun.wait()
        works: list[Callable[[], None]] = [self._pyiceberg, self._banker]
        if spark is not None:
            spark.attach("killed", f"{self._address}/iceberg", cache_enabled="false")
            works.append(lambda: self._spark(spark))
        await asyncio.gather(*(asyncio.to_thread(work) for work in works))

    def _pyiceberg(self) -> None:
        def append(row: int) -> None:
            with self._catalog() as catalog:
                catalog.load_table((ENGINES, "pyiceberg")).append(pa.table({"a": [row]}, schema=SCHEMA))

        self._write("pyiceberg", append)

    def _spark(self, spark: Spark) -> None:
        self._write("spark", lambda row: spark(f"INSERT INTO killed.{ENGINES}.spark VALUES ({row})") and None)

    def _write(self, engine: str, append: Callable[[int], None]) -> None:
        written = self.written[engine] = Written()
        for row in itertools.count():
            if self._stopping:
                return
            try:
                append(row)
            except Exception as error:
                # Spark's errors are Java's, and a reply that was cut can be any of them.
                if _is_no(error):
                    raise
                written.in_doubt.append(row)
            else:
                written.acknowledged.append(row)

    def _banker(self) -> None:
        """Commits to single tables that transactions are at work on."""
        for number in itertools.count():
            if self._stopping:
                return
            try:
                with self._catalog() as catalog:
                    table = catalog.load_table((BANK, ACCOUNTS[number % len(ACCOUNTS)]))
                    with table.transaction() as change:
                        change.set_properties(audited=str(number))
                    self.bank_changes += 1
            except (RESTError, CommitFailedException, RequestException) as error:
                if _is_no(error):
                    raise

    def _catalog(self) -> RestCatalog:
        return RestCatalog("killed", uri=f"{self._address}/iceberg")


def _is_no(error: Exception) -> bool:
    """Whether an engine was told that what it asks for is wrong. It is not: no kill may make a server say so."""
    words = ("BadRequest", "NoSuch", "Forbidden", "NotAuthorized", "ValidationException", "AlreadyExists")
    return any(word in repr(error) for word in words)


def rows_of(address: str, engine: str) -> list[int]:
    """What is in the table of an engine, by a server that was not killed."""
    with RestCatalog("fresh", uri=f"{address}/iceberg") as catalog:
        found: list[int] = catalog.load_table((ENGINES, engine)).scan().to_arrow()["a"].to_pylist()
        return found
