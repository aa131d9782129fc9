"""What happens in the stored roots of transactions: one that is done, one that is refused, others whose process died.

One of the two died right after its decision, with a table that it creates; the other before it. A third that died is sent back by
whoever came after it. `python -m tests.compat.txn_story v1` keeps what the story leaves; a stored root is never written again.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.iceberg import requests
from arco.kernel import crash_points
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError
from arco.kernel.ids import new_uuid4, new_uuid7
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco.storage.keys import Slug
from arco.txn.transactions import Transactions
from tests.compat.story import Mortal, table_body
from tests.stand_ins.hand_clock import HandClock

BASE_URI = "s3://lake"
SCOPE = Scope.of()
BANK = ("bank",)
STORED = Path(__file__).parent / "transactions"
TABLES = ("debit", "credit", "fees")


class _Story:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.entropy = SeededEntropy("a root of transactions")
        self.store = Mortal(self.clock)
        self.catalog = self._opened()

    def _opened(self) -> Catalog:
        return Catalog.open(self.store, BASE_URI, SCOPE, self.clock, self.entropy)

    def key(self, body: Any) -> RequestKey:
        self.clock.at_ms += 1000
        return RequestKey(new_uuid7(self.clock, self.entropy), "commitTransaction", request_hash(body))

    def plain(self) -> RequestKey:
        self.clock.at_ms += 1000
        return self.catalog.parts.markers.request_key(None, "story", "")

    async def found(self) -> None:
        await create_namespace(self.catalog.parts, BANK, {}, self.plain(), Author("teller"))
        for name in TABLES:
            request = requests.parse_create_table(table_body(name, 2))
            await self.catalog.tables.create(BANK, request, self.plain(), Source(principal="teller"))
        await self.catalog.parts.afterwards.settle()

    async def transact(self, *changes: dict[str, Any]) -> None:
        parsed = [requests.parse_commit_table(change) for change in changes]
        await Transactions(self.catalog).commit(parsed, self.key(list(changes)), Source(principal="teller"))
        await self.catalog.parts.afterwards.settle()

    async def dies_at(self, point: str, *changes: dict[str, Any]) -> None:
        def hook(name: str) -> None:
            if name == point:
                self.store.dead = True

        crash_points.install(hook)
        try:
            with suppress(ArcoError):
                await self.transact(*changes)
            await self.catalog.parts.afterwards.settle()
        finally:
            crash_points.install(None)
            self.store.dead = False
            self.catalog = self._opened()

    def created(self, name: str) -> dict[str, Any]:
        uuid = new_uuid4(self.entropy)
        place = self.catalog.tables.own_location(Slug.from_name(name), uuid)
        updates: list[dict[str, Any]] = [
            {"action": "assign-uuid", "uuid": uuid},
            {"action": "set-location", "location": place},
            {"action": "add-schema", "schema": {"type": "struct", "fields": []}},
            {"action": "set-current-schema", "schema-id": -1},
        ]
        return changed(name, "") | {"requirements": [{"type": "assert-create"}], "updates": updates}


def changed(name: str, label: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    return {
        "identifier": {"namespace": list(BANK), "name": name},
        "requirements": list(requirements),
        "updates": [{"action": "set-properties", "updates": {"last": label}}],
    }


async def tell() -> dict[str, bytes]:
    story = _Story()
    await story.found()
    await story.transact(story.created("ledger"), changed("debit", "done"))
    never = {"type": "assert-current-schema-id", "current-schema-id": 77}
    with suppress(ArcoError):
        await story.transact(changed("debit", "refused"), changed("credit", "refused", never))
    await story.dies_at("txn.decided", story.created("audit"), changed("debit", "decided"), changed("credit", "decided"))
    await story.dies_at("txn.reserved", story.created("lost"), changed("fees", "lost"))
    story.clock.at_ms += 61_000
    await create_namespace(story.catalog.parts, ("other",), {}, story.plain(), Author("teller"))
    await story.dies_at("txn.reserved", story.created("never"), changed("fees", "undecided"))
    return story.store.objects()


def write(objects: dict[str, bytes], folder: Path) -> None:
    for name, data in objects.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def main() -> None:
    folder = STORED / sys.argv[1]
    if folder.exists():
        sys.exit(f"{folder} is stored already: it must stay as it is")
    write(asyncio.run(tell()), folder)


if __name__ == "__main__":
    main()
