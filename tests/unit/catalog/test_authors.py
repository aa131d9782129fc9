"""Who asked for a change of names is known, also where a commit holds the changes of many."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from arco.catalog.feed_events import Callings, events_of_names
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory, NewTable
from arco.catalog.manifest import Author, Commit, decode_commit
from arco.catalog.model import Format
from arco.catalog.name_events import name_events
from arco.catalog.namespaces import create_namespace
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import new_uuid7
from arco.ledger.receipts import Source
from arco.txn.transactions import Transactions
from unit.catalog.ground import MANIFEST, NAMESPACE, Ground, Server, story
from unit.txn.test_creations import created

ANN, BOB = Author("ann", "pyiceberg 0.12"), Author("bob")


async def in_one_commit(server: Server, *works: Coroutine[Any, Any, Any]) -> Commit:
    """They come while another commit is under way."""
    first = server.line.delay("put", MANIFEST)
    making = await first.holds(server.make_namespace("first", "first"))
    waiting = [asyncio.ensure_future(work) for work in works]
    for _ in range(20):
        await asyncio.sleep(0)
    await first.answer()
    await asyncio.gather(making, *waiting)
    last = server.ws.tier1.manifest.tail[-1]
    assert len(last.operations) == len(works)
    return last


async def grouped(server: Server, *authors: Author) -> Commit:
    """One commit with a table of each author."""
    await server.found()
    tables = [NewTable(NAMESPACE, f"t{number}", Format.CSV, f"s3://other/t{number}") for number in range(len(authors))]
    keys = [RequestKey(f"key {number}", "register", "", durable=False) for number in range(len(authors))]
    inventory = Inventory(server.catalog)
    return await in_one_commit(server, *map(inventory.create, tables, keys, authors))


@story
async def test_a_commit_of_many_says_who_asked_for_each():
    commit = await grouped(Ground().server(), ANN, BOB)
    assert (commit.author, commit.client_id) == ("several", None)
    assert [author for _, author in commit.asked()] == [ANN, BOB]
    assert [event.data["who"] for event in name_events(commit)] == ["ann", "bob"]


@story
async def test_the_feed_says_who_asked_for_each():
    server = Ground().server()
    await server.found()
    keys = [RequestKey(author.principal, "create", "", durable=False) for author in (ANN, BOB)]
    making = [create_namespace(server.ws, (key.key,), {}, key, who) for key, who in zip(keys, (ANN, BOB), strict=True)]
    commit = await in_one_commit(server, *making)
    told = events_of_names(commit, Callings(server.ws.tier1.names))
    assert [event["actor"] for event in told] == [{"principal": "ann", "client": "pyiceberg 0.12"}, {"principal": "bob"}]


@story
async def test_a_table_that_a_transaction_made_is_of_whoever_sent_the_transaction():
    ground = Ground()
    sender, other = ground.server(), ground.server()
    await sender.found("a")
    body = [created(sender, "mine"), created(sender, "mine too")]
    key = RequestKey(new_uuid7(ground.clock, SeededEntropy("ann's")), "commitTransaction", request_hash(body))
    changes = [requests.parse_commit_table(one) for one in body]
    await Transactions(sender.catalog).commit(changes, key, Source(principal="ann"))
    sender.line.cut()
    await other.make_namespace("another", "another")
    told = [event.data for commit in other.ws.tier1.manifest.tail for event in name_events(commit)]
    assert {said["name"]: said["who"] for said in told} == {"a": "anonymous", "mine": "ann", "mine too": "ann"}


@story
async def test_a_commit_of_one_says_so_once():
    commit = await grouped(Ground().server(), ANN, ANN)
    assert (commit.author, commit.client_id, commit.authors) == ("ann", "pyiceberg 0.12", ())
    assert [author for _, author in commit.asked()] == [ANN, ANN]
    assert b"authors" not in commit.encode()


@story
async def test_a_commit_of_before_is_read_and_keeps_its_hash():
    commit = await grouped(Ground().server(), ANN, BOB)
    old = {name: value for name, value in msgspec.to_builtins(commit).items() if name != "authors"}
    data = msgspec.json.encode(old)
    read = decode_commit(data, "key")
    assert read.encode() == data
    assert [author for _, author in read.asked()] == [Author("several")] * 2
