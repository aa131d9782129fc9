"""`verify` sees every kind of damage, where it is, and nothing else; and it writes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from arco.catalog.model import Namespace
from arco.catalog.operations import CreateNamespace, Describe, Purge
from arco.catalog.state_files import encode_changes
from arco.catalog.verify import verify
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import STATE_DELTAS_MAX
from arco.ledger.receipts import Published, Receipt, commit_key, decode_receipt
from arco.storage.findings import Report
from stand_ins.lake import AUTHOR, MANIFEST, Lake, commit_object, pointer_object

ORDERS = (("shop",), "orders")
Damage = Callable[[Lake], Awaitable[None]]


async def grown() -> Lake:
    """A base, deltas and a tail; tables with commits, a view, other formats, former names, drops of every kind."""
    lake = Lake()
    await lake.namespace("shop")
    await lake.namespace("shop", "raw")
    await lake.table(*ORDERS, commits=3)
    await lake.other(("shop",), "events", properties={"z": "1", "a": "2"})
    await lake.view(("shop",), "report")
    for number in range(STATE_DELTAS_MAX + 2):
        await lake.describe((("shop",), "events"), row_count=number)
        await lake.checkpoint()
    await lake.table(("shop",), "old", commits=1)
    await lake.drop((("shop",), "old"))
    await lake.table(("shop",), "purged")
    await lake.drop((("shop",), "purged"), purge=True)
    await lake.table(("shop", "raw"), "clicks")
    await lake.checkpoint()
    await lake.rename((("shop", "raw"), "clicks"), (("shop", "raw"), "views"))
    await lake.describe(ORDERS, owner="ann", tags=["gold"])
    await lake.settle()
    return lake


async def purge(lake: Lake) -> str:
    """Forget a table whose hold has passed, as upkeep does before its files go: its identity."""
    tier1 = lake.catalog.parts.tier1
    dropped = (await tier1.current()).names.last_dropped(("shop",), "purged")
    assert dropped is not None
    operation = Purge(key_hash="0" * 32, uuid=dropped.entry.uuid, drop_id=dropped.drop_id)
    await lake.catalog.parts.committer.submit(operation, since=tier1.seen.sequence, author=AUTHOR)
    return dropped.entry.uuid


@pytest.fixture(scope="module")
def whole() -> Lake:
    return asyncio.run(grown())


def codes(lake: Lake, *, deep: bool = False) -> list[str]:
    report = asyncio.run(lake.verify(deep=deep))
    return [finding.code for finding in report.findings]


async def uuid_of(lake: Lake, *name: str) -> str:
    names = (await lake.catalog.parts.tier1.current()).names
    place = (name[:-1], name[-1])
    found = names.entries.get(place)
    if found is not None:
        return found.uuid
    dropped = names.last_dropped(*place)
    assert dropped is not None
    return dropped.entry.uuid


async def commit_key_at(lake: Lake, number: int) -> str:
    return commit_object((await lake.chain())[number - 1].id)


def flipped(data: bytes, at: bytes) -> bytes:
    """One bit of the first byte after some text."""
    place = data.index(at) + len(at)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_the_lake_has_everything_that_can_be_damaged(whole: Lake) -> None:
    manifest = asyncio.run(whole.manifest())
    assert manifest.base is not None
    assert len(manifest.deltas) >= 2
    assert len(manifest.tail) >= 2


def test_a_whole_catalog_is_clean_and_counted(whole: Lake) -> None:
    report = asyncio.run(whole.verify(deep=True))
    assert report.findings == []
    assert report.notes == []
    manifest = asyncio.run(whole.manifest())
    assert report.counts == {
        "commits": manifest.sequence,
        "commits_beside_the_chain": 0,
        "state_files": 1 + len(manifest.deltas),
        "commits_in_the_tail": len(manifest.tail),
        "namespaces": 2,
        "other_tables": 1,
        "iceberg_tables": 2,
        "iceberg_views": 1,
        "dropped": 2,
        "nameless_pointers": 0,
        "receipts": 4 + 2 + 1 + 1 + 1,
        "snapshots": 0,
        "manifests": 0,
        "data_files": 0,
    }


def test_verifying_writes_nothing(whole: Lake) -> None:
    async def versions() -> dict[str, Any]:
        return {key: (await whole.store.head(key)) for key in await whole.keys()}

    before = asyncio.run(versions())
    asyncio.run(whole.verify(deep=True))
    assert asyncio.run(versions()) == before


def test_a_workspace_without_a_catalog_is_clean_and_says_so() -> None:
    report = asyncio.run(Lake().verify())
    assert report.findings == []
    assert report.notes == ["there is no catalog default/default here yet"]


# Damage to the chain


async def a_byte_of_an_old_commit(lake: Lake) -> None:
    key = await commit_key_at(lake, 2)
    await lake.put(key, flipped(await lake.bytes_of(key), b'"author":"'))


async def a_byte_of_a_commit_in_the_tail(lake: Lake) -> None:
    key = await commit_key_at(lake, (await lake.manifest()).sequence - 1)
    await lake.put(key, flipped(await lake.bytes_of(key), b'"author":"'))


async def a_space_in_a_commit(lake: Lake) -> None:
    """It decodes to the very same commit."""
    key = await commit_key_at(lake, 2)
    await lake.put(key, await lake.bytes_of(key) + b" ")


async def the_link_of_a_commit(lake: Lake) -> None:
    key = await commit_key_at(lake, 5)
    await lake.put(key, flipped(await lake.bytes_of(key), b'"previous_hash":"'))


async def the_name_of_the_previous_commit(lake: Lake) -> None:
    key = await commit_key_at(lake, 5)
    await lake.edit(key, lambda commit: commit.update(previous_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"))


async def the_name_of_an_earlier_commit(lake: Lake) -> None:
    earlier = (await lake.chain())[1].id
    await lake.edit(await commit_key_at(lake, 5), lambda commit: commit.update(previous_id=earlier))


async def a_circle(lake: Lake) -> None:
    later = (await lake.chain())[6].id
    await lake.edit(await commit_key_at(lake, 5), lambda commit: commit.update(previous_id=later))


async def an_old_commit_gone(lake: Lake) -> None:
    await lake.store.delete(await commit_key_at(lake, 3))


async def a_commit_of_the_tail_gone(lake: Lake) -> None:
    await lake.store.delete(await commit_key_at(lake, (await lake.manifest()).sequence))


async def an_old_commit_cut_off(lake: Lake) -> None:
    key = await commit_key_at(lake, 3)
    await lake.put(key, (await lake.bytes_of(key))[:-5])


async def an_old_commit_that_is_no_text(lake: Lake) -> None:
    """One bit of a letter, in a name that somebody gave."""
    key = await commit_key_at(lake, 3)
    await lake.put(key, (await lake.bytes_of(key)).replace(b'"author":"', b'"author":"\xe1', 1))


async def an_old_commit_emptied(lake: Lake) -> None:
    await lake.put(await commit_key_at(lake, 3), b"")


async def a_chain_cut_short(lake: Lake) -> None:
    await lake.forge(4, previous_id=None, previous_hash=None)


async def a_chain_before_its_beginning(lake: Lake) -> None:
    await lake.forge(1, previous_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", previous_hash="0" * 64)


async def a_number_twice(lake: Lake) -> None:
    """Every hash is right, and one commit counts as the one after it."""
    await lake.forge(4, sequence=5)


async def no_head(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m.update(last_commit_id=None, last_commit_hash=None))


async def another_hash_of_the_head(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m.update(last_commit_hash="0" * 64))


CHAIN: dict[str, tuple[Damage, list[str], str]] = {
    "a byte of an old commit": (a_byte_of_an_old_commit, ["commit_altered"], "commit 2 "),
    "a byte of a commit in the tail": (a_byte_of_a_commit_in_the_tail, ["commit_altered"], "its hash is wrong"),
    "a space in a commit": (a_space_in_a_commit, ["commit_altered"], "commit 2 "),
    "the link of a commit": (the_link_of_a_commit, ["commit_altered"], "commit 5 "),
    "the name of the previous commit": (the_name_of_the_previous_commit, ["commit_altered"], "commit 5 "),
    "the name of an earlier commit": (the_name_of_an_earlier_commit, ["commit_altered"], "commit 5 "),
    "a circle": (a_circle, ["commit_altered", "chain_goes_on"], "commit 5 "),
    "an old commit gone": (an_old_commit_gone, ["commit_missing"], "commit 3 of the chain is missing"),
    "a commit of the tail gone": (a_commit_of_the_tail_gone, ["commit_missing"], "of the chain is missing"),
    "an old commit cut off": (an_old_commit_cut_off, ["commit_unreadable"], "commit 3 does not parse"),
    "an old commit that is no text": (an_old_commit_that_is_no_text, ["commit_unreadable"], "commit 3 does not parse"),
    "an old commit emptied": (an_old_commit_emptied, ["commit_unreadable"], "commit 3 does not parse"),
    "a chain cut short": (a_chain_cut_short, ["chain_ends_early"], "commit 4 "),
    "a chain before its beginning": (a_chain_before_its_beginning, ["chain_goes_on"], "commit 1 "),
    "a number twice": (a_number_twice, ["commit_out_of_order", "commit_out_of_order"], "is number 5"),
    "no head": (no_head, ["chain_has_no_head"], "names none of them"),
    "another hash of the head": (another_hash_of_the_head, ["commit_altered"], "its hash is wrong"),
}


@pytest.mark.parametrize("case", CHAIN)
def test_damage_to_the_chain_is_found_where_it_is(whole: Lake, case: str) -> None:
    damage, expected, says = CHAIN[case]
    lake = asyncio.run(whole.copy())
    asyncio.run(damage(lake))
    report = asyncio.run(lake.verify(deep=True))
    assert [finding.code for finding in report.findings] == expected
    assert says in report.findings[0].what
    assert report.findings[0].todo
    assert "\n" not in report.findings[0].one_line()


def test_what_a_missing_commit_hides_is_said(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(an_old_commit_gone(lake))
    notes = asyncio.run(lake.verify()).notes
    assert notes[0] == "commits 1 to 2 were not looked at: commit 3 cannot be read"
    assert "was not compared" in notes[1]


def test_a_commit_that_the_manifest_still_holds_hides_nothing(whole: Lake) -> None:
    """Its copy is proved by the hash, so that the chain is followed and the state compared all the same."""
    for damage in (a_commit_of_the_tail_gone, a_byte_of_a_commit_in_the_tail):
        lake = asyncio.run(whole.copy())
        asyncio.run(damage(lake))
        report = asyncio.run(lake.verify())
        assert report.notes == []
        assert report.counts["commits"] == asyncio.run(lake.manifest()).sequence


def test_commits_that_lost_a_race_are_no_damage(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    first = asyncio.run(lake.chain())[0]
    loser = msgspec.structs.replace(first, id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    asyncio.run(lake.put(commit_object(loser.id), loser.encode()))
    report = asyncio.run(lake.verify())
    assert report.clean
    assert report.counts["commits_beside_the_chain"] == 1


# Damage to the manifest and the state


async def no_manifest(lake: Lake) -> None:
    await lake.store.delete(MANIFEST)


async def a_manifest_that_is_no_json(lake: Lake) -> None:
    await lake.put(MANIFEST, b"{")


async def a_manifest_of_a_newer_version(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m.update(format_version=99))


async def a_commit_too_many(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m.update(sequence=m["sequence"] + 1))


async def another_copy_in_the_tail(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m["tail"][0].update(author="mallory"))


async def a_copy_in_the_tail_that_does_not_apply(lake: Lake) -> None:
    again = {"op": "create_namespace", "key_hash": "x", "id": "y", "levels": ["shop"], "properties": {}}
    await lake.edit_manifest(lambda m: m["tail"][0].update(operations=[again]))


async def the_last_delta_forgotten(lake: Lake) -> None:
    await lake.edit_manifest(lambda m: m["deltas"].pop())


async def a_delta_forgotten(lake: Lake) -> None:
    """The last but one holds what was said of the table of another format last; the base knows an older word."""
    await lake.edit_manifest(lambda m: m["deltas"].pop(-2))


async def a_byte_of_the_base(lake: Lake) -> None:
    base = (await lake.manifest()).base
    assert base is not None
    data = await lake.bytes_of(base.key)
    await lake.put(base.key, data[:50] + bytes([data[50] ^ 1]) + data[51:])


async def no_base(lake: Lake) -> None:
    base = (await lake.manifest()).base
    assert base is not None
    await lake.store.delete(base.key)


async def a_delta_that_says_more(lake: Lake) -> None:
    made_up = Namespace("id", ("made", "up"), {}, 0, 0)
    data, _ = encode_changes([("namespace", '["made","up"]', made_up)])
    deltas = (await lake.manifest()).deltas
    file = deltas[0].key
    await lake.edit_manifest(lambda m: m["deltas"].insert(0, {**m["deltas"][0], "key": f"{file}.more"}))
    await lake.put(f"{file}.more", data)
    await lake.replace_state(0, data)


async def a_delta_that_is_no_parquet(lake: Lake) -> None:
    await lake.replace_state(0, b"not a table")


async def history_rewritten(lake: Lake) -> None:
    """Every hash is right; what the commits add up to is not what servers see."""
    commits = await lake.chain()
    number, said = next(
        (commit.sequence, operation)
        for commit in reversed(commits[: (await lake.manifest()).checkpointed_sequence])
        for operation in commit.operations
        if isinstance(operation, Describe)
    )
    await lake.forge(number, operations=(msgspec.structs.replace(said, governance={"row_count": 7}),))


async def history_that_does_not_apply(lake: Lake) -> None:
    again = CreateNamespace(key_hash="x", id="y", levels=("shop",), properties={})
    await lake.forge(2, operations=(again,))


STATE: dict[str, tuple[Damage, list[str], str]] = {
    "no manifest": (no_manifest, ["manifest_missing"], "there are commits and no manifest"),
    "a manifest that is no JSON": (a_manifest_that_is_no_json, ["manifest_unreadable"], "does not parse"),
    "a manifest of a newer version": (a_manifest_of_a_newer_version, ["manifest_unreadable"], "format version 99"),
    "a commit too many": (a_commit_too_many, ["commit_out_of_order", "manifest_contradicts_itself"], "is number"),
    "another copy in the tail": (another_copy_in_the_tail, ["tail_differs"], "is not the commit"),
    "a copy that does not apply": (
        a_copy_in_the_tail_that_does_not_apply,
        ["tail_differs", "tail_does_not_apply"],
        "is not the commit",
    ),
    "the last delta forgotten": (the_last_delta_forgotten, ["manifest_contradicts_itself"], "its checkpoint says"),
    "a delta forgotten": (a_delta_forgotten, ["state_differs"], 'entry ["shop","events"] differs'),
    "a byte of the base": (a_byte_of_the_base, ["state_altered"], "does not match its checksum"),
    "no base": (no_base, ["state_missing"], "is missing"),
    "a delta that says more": (a_delta_that_says_more, ["state_differs"], 'namespace ["made","up"] is in the state alone'),
    "a delta that is no Parquet": (a_delta_that_is_no_parquet, ["state_unreadable"], "is not a Parquet file"),
    "history rewritten": (history_rewritten, ["state_differs"], 'entry ["shop","events"] differs'),
    "history that does not apply": (
        history_that_does_not_apply,
        ["commit_does_not_apply"],
        "commit 2 does not apply to the state before it",
    ),
}


@pytest.mark.parametrize("case", STATE)
def test_damage_to_the_state_is_found(whole: Lake, case: str) -> None:
    damage, expected, says = STATE[case]
    lake = asyncio.run(whole.copy())
    asyncio.run(damage(lake))
    report = asyncio.run(lake.verify(deep=True))
    assert [finding.code for finding in report.findings] == expected
    assert says in report.findings[0].what
    assert report.findings[0].todo


@pytest.mark.parametrize("case", ["a byte of the base", "no base", "a delta that is no Parquet"])
def test_state_that_can_be_made_again_says_by_what(whole: Lake, case: str) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(STATE[case][0](lake))
    (finding,) = asyncio.run(lake.verify()).findings
    assert "arco verify --repair" in finding.todo


def test_what_a_newer_arco_wrote_is_not_to_be_restored(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(a_manifest_of_a_newer_version(lake))
    (finding,) = asyncio.run(lake.verify()).findings
    assert "pip install --upgrade arco" in finding.todo
    assert "restore" not in finding.todo


def test_many_differences_are_shown_in_part(whole: Lake) -> None:
    async def damaged() -> Lake:
        lake = await whole.copy()
        made_up = [(("made", f"{number:02}"), number) for number in range(30)]
        changes = [
            ("namespace", msgspec.json.encode(levels).decode(), Namespace("id", levels, {}, 0, 0)) for levels, _ in made_up
        ]
        await lake.replace_state(0, encode_changes(changes)[0])
        return lake

    report = asyncio.run(asyncio.run(damaged()).verify())
    assert len([one for one in report.findings if one.code == "state_differs"]) == 20
    assert any("more documents differ" in note for note in report.notes)


# Damage to tables


async def no_pointer(lake: Lake) -> None:
    await lake.store.delete(pointer_object(await uuid_of(lake, "shop", "orders")))


async def no_pointer_of_a_dropped_table(lake: Lake) -> None:
    await lake.store.delete(pointer_object(await uuid_of(lake, "shop", "old")))


async def a_pointer_that_is_no_json(lake: Lake) -> None:
    await lake.put(pointer_object(await uuid_of(lake, "shop", "orders")), b"{}")


async def the_pointer_of_another_table(lake: Lake) -> None:
    theirs = await lake.bytes_of(pointer_object(await uuid_of(lake, "shop", "raw", "views")))
    await lake.put(pointer_object(await uuid_of(lake, "shop", "orders")), theirs)


async def the_pointer_of_a_view(lake: Lake) -> None:
    await lake.edit(pointer_object(await uuid_of(lake, "shop", "orders")), lambda pointer: pointer.update(kind="view"))


async def a_pointer_without_a_name_cut_off(lake: Lake) -> None:
    key = pointer_object(await purge(lake))
    await lake.put(key, (await lake.bytes_of(key))[:20])


async def no_metadata_of_a_table_within_its_hold(lake: Lake) -> None:
    await lake.store.delete(await metadata_key(lake, "shop", "purged"))


async def litter_that_is_another_pointer(lake: Lake) -> None:
    theirs = await lake.bytes_of(pointer_object(await uuid_of(lake, "shop", "orders")))
    await lake.put(pointer_object("0193f000-0000-7000-8000-000000000001"), theirs)


async def another_snapshot_in_the_pointer(lake: Lake) -> None:
    key = pointer_object(await uuid_of(lake, "shop", "orders"))
    await lake.edit(key, lambda pointer: pointer.update(snapshot_id=7))


async def metadata_outside_the_root(lake: Lake) -> None:
    def move(pointer: dict[str, Any]) -> None:
        pointer["metadata_location"] = "file:///elsewhere/00003-x.metadata.json"

    await lake.edit(pointer_object(await uuid_of(lake, "shop", "orders")), move)


async def metadata_key(lake: Lake, *name: str) -> str:
    pointer = await lake.catalog.parts.pointers.read(await uuid_of(lake, *name))
    assert pointer is not None
    return pointer.value.metadata_location.removeprefix("file:///lake/")


async def no_metadata(lake: Lake) -> None:
    await lake.store.delete(await metadata_key(lake, "shop", "orders"))


async def no_metadata_of_a_dropped_table(lake: Lake) -> None:
    await lake.store.delete(await metadata_key(lake, "shop", "old"))


async def no_metadata_of_a_view(lake: Lake) -> None:
    await lake.store.delete(await metadata_key(lake, "shop", "report"))


async def metadata_cut_off(lake: Lake) -> None:
    key = await metadata_key(lake, "shop", "orders")
    await lake.put(key, (await lake.bytes_of(key))[:100])


async def metadata_of_another_table(lake: Lake) -> None:
    theirs = await lake.bytes_of(await metadata_key(lake, "shop", "raw", "views"))
    await lake.put(await metadata_key(lake, "shop", "orders"), theirs)


async def receipt_keys(lake: Lake, *name: str) -> dict[int, str]:
    """The committed receipts of a table, by the numbers of their commits."""
    uuid = await uuid_of(lake, *name)
    found = {}
    for key in await lake.keys("/committed/"):
        receipt = decode_receipt(await lake.bytes_of(key), key)
        if receipt.table_uuid == uuid:
            found[receipt.commit.commit_number] = key
    return found


async def the_last_receipt_altered(lake: Lake) -> None:
    key = (await receipt_keys(lake, "shop", "orders"))[3]
    await lake.edit(key, lambda receipt: receipt["commit"].update(event_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"))


async def the_last_receipt_emptied(lake: Lake) -> None:
    await lake.put((await receipt_keys(lake, "shop", "orders"))[3], b"")


async def no_last_receipt_of_a_dropped_table(lake: Lake) -> None:
    await lake.store.delete((await receipt_keys(lake, "shop", "old"))[1])


TABLES: dict[str, tuple[Damage, str, str]] = {
    "no pointer": (no_pointer, "pointer_missing", "table shop.orders has no pointer"),
    "no pointer of a dropped table": (no_pointer_of_a_dropped_table, "pointer_missing", "dropped table shop.old"),
    "a pointer that is no JSON": (a_pointer_that_is_no_json, "pointer_unreadable", "table shop.orders cannot be read"),
    "the pointer of another": (the_pointer_of_another_table, "pointer_unreadable", "is the pointer of"),
    "the pointer of a view": (the_pointer_of_a_view, "pointer_of_another", "the pointer of table shop.orders"),
    "a pointer without a name": (a_pointer_without_a_name_cut_off, "pointer_unreadable", "_catalog/iceberg_pointers/"),
    "litter that is another": (litter_that_is_another_pointer, "pointer_unreadable", "is the pointer of"),
    "another snapshot": (another_snapshot_in_the_pointer, "pointer_contradicts_metadata", "says snapshot 7"),
    "metadata outside": (metadata_outside_the_root, "metadata_out_of_reach", "file:///elsewhere/00003-x.metadata.json"),
    "no metadata": (no_metadata, "metadata_missing", "the metadata file of table shop.orders is missing"),
    "no metadata, dropped": (no_metadata_of_a_dropped_table, "metadata_missing", "dropped table shop.old is missing"),
    "no metadata, within its hold": (
        no_metadata_of_a_table_within_its_hold,
        "metadata_missing",
        "dropped table shop.purged is missing",
    ),
    "no metadata, view": (no_metadata_of_a_view, "metadata_missing", "view shop.report is missing"),
    "metadata cut off": (metadata_cut_off, "metadata_unreadable", "table shop.orders cannot be read"),
    "metadata of another": (metadata_of_another_table, "metadata_of_another", "the metadata of table shop.orders is that"),
    "the last receipt altered": (the_last_receipt_altered, "receipt_altered", "commit 3 of table shop.orders"),
    "the last receipt emptied": (the_last_receipt_emptied, "receipt_unreadable", "is not a receipt"),
    "no last receipt, dropped": (no_last_receipt_of_a_dropped_table, "receipt_missing", "dropped table shop.old"),
}


@pytest.mark.parametrize("case", TABLES)
def test_damage_to_a_table_is_found(whole: Lake, case: str) -> None:
    damage, expected, says = TABLES[case]
    lake = asyncio.run(whole.copy())
    asyncio.run(damage(lake))
    report = asyncio.run(lake.verify())
    assert [finding.code for finding in report.findings] == [expected]
    assert says in report.findings[0].what
    assert report.findings[0].todo


# Receipts, looked at deeply


async def a_receipt_gone(lake: Lake) -> None:
    await lake.store.delete((await receipt_keys(lake, "shop", "orders"))[1])


async def the_pointer_set_back(lake: Lake) -> None:
    """As after restoring one object from a backup: everything it names is there."""
    receipts = await receipt_keys(lake, "shop", "orders")
    before = decode_receipt(await lake.bytes_of(receipts[2]), receipts[2]).commit

    def set_back(pointer: dict[str, Any]) -> None:
        pointer.update(
            commit_number=2,
            metadata_location=before.metadata_location,
            previous_metadata_location=before.previous_metadata_location,
            published=[msgspec.to_builtins(before)],
        )

    await lake.edit(pointer_object(await uuid_of(lake, "shop", "orders")), set_back)


async def another_receipt(lake: Lake, *, source: str) -> Published:
    """A second receipt of one number, on the same base, as a double commit leaves it."""
    key = (await receipt_keys(lake, "shop", "orders"))[1]
    receipt = decode_receipt(await lake.bytes_of(key), key)
    location = f"{receipt.commit.metadata_location}.again"
    other = msgspec.structs.replace(
        receipt.commit,
        metadata_location=location,
        source=msgspec.structs.replace(receipt.commit.source, kind=source),
    )
    again = Receipt("arco.receipt", 1, receipt.phase, receipt.table_uuid, str(commit_key(location, 1)), other)
    await lake.put(lake.catalog.parts.receipts.name(other), msgspec.json.encode(again))
    return other


async def a_commit_twice(lake: Lake) -> None:
    await another_receipt(lake, source="iceberg-rest")


async def an_old_receipt_altered(lake: Lake) -> None:
    key = (await receipt_keys(lake, "shop", "orders"))[1]
    await lake.edit(key, lambda receipt: receipt["commit"].update(commit_number=9))


async def an_old_receipt_emptied(lake: Lake) -> None:
    await lake.put((await receipt_keys(lake, "shop", "orders"))[1], b"")


DEEP: dict[str, tuple[Damage, list[str], str]] = {
    "a receipt gone": (a_receipt_gone, ["receipt_gap"], "the receipts of commits 1 of shop.orders are missing"),
    "the pointer set back": (
        the_pointer_set_back,
        ["pointer_set_back"],
        "a receipt of commit 3, and its pointer is at commit 2",
    ),
    "a commit twice": (a_commit_twice, ["commit_twice"], "2 commits of shop.orders have number 1"),
    "an old receipt altered": (
        an_old_receipt_altered,
        ["receipt_altered", "receipt_gap"],
        "does not say what its name says",
    ),
    "an old receipt emptied": (an_old_receipt_emptied, ["receipt_unreadable", "receipt_gap"], "is not a receipt"),
}


@pytest.mark.parametrize("case", DEEP)
def test_damage_to_receipts_is_found_by_a_deep_look_alone(whole: Lake, case: str) -> None:
    damage, expected, says = DEEP[case]
    lake = asyncio.run(whole.copy())
    asyncio.run(damage(lake))
    assert codes(lake) == []
    report = asyncio.run(lake.verify(deep=True))
    assert [finding.code for finding in report.findings] == expected
    assert says in report.findings[0].what


def test_a_table_registered_anew_counts_from_its_beginning(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(another_receipt(lake, source="register"))
    assert codes(lake, deep=True) == []


def test_old_receipts_may_be_gone_from_the_oldest_on(whole: Lake) -> None:
    async def collected() -> Lake:
        lake = await whole.copy()
        receipts = await receipt_keys(lake, "shop", "orders")
        await lake.store.delete(receipts[0])
        await lake.store.delete(receipts[1])
        return lake

    assert codes(asyncio.run(collected()), deep=True) == []


# What is no damage


def test_the_receipt_of_the_newest_commit_may_still_be_to_come(whole: Lake) -> None:
    async def cut_off() -> Lake:
        lake = await whole.copy()
        await lake.store.delete((await receipt_keys(lake, "shop", "orders"))[3])
        return lake

    report = asyncio.run(asyncio.run(cut_off()).verify(deep=True))
    assert report.clean
    assert report.counts["receipts_to_be_written"] == 1


def test_a_drop_that_died_half_way_is_under_way(whole: Lake) -> None:
    async def half_dropped() -> Lake:
        lake = await whole.copy()
        before = await lake.bytes_of(MANIFEST)
        await lake.drop(ORDERS)
        await lake.settle()
        await lake.put(MANIFEST, before)
        return lake

    report = asyncio.run(asyncio.run(half_dropped()).verify())
    assert report.clean
    assert report.counts["under_way"] == 1
    assert report.counts["commits_beside_the_chain"] == 1


def test_a_restore_that_died_half_way_is_under_way(whole: Lake) -> None:
    async def half_restored() -> Lake:
        lake = await whole.copy()
        key = pointer_object(await uuid_of(lake, "shop", "old"))
        before = await lake.bytes_of(key)
        dropped = (await lake.catalog.parts.tier1.current()).names.last_dropped(("shop",), "old")
        assert dropped is not None
        await lake.catalog.tables.undrop(dropped, ("shop",), "old", lake.key(), AUTHOR)
        await lake.settle()
        await lake.put(key, before)
        return lake

    report = asyncio.run(asyncio.run(half_restored()).verify(deep=True))
    assert report.clean
    assert report.counts["under_way"] == 1


def test_a_registration_that_died_half_way_is_under_way(whole: Lake) -> None:
    async def half_registered(lake: Lake) -> None:
        """As a table of another catalog whose files were copied here."""
        key = await metadata_key(lake, "shop", "orders")
        document = msgspec.json.decode(await lake.bytes_of(key))
        uuid = "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40"
        place = f"default/default/data/copied-{uuid}"
        document.update({"table-uuid": uuid, "location": f"file:///lake/{place}"})
        location = f"file:///lake/{place}/metadata/00000-x.metadata.json"
        await lake.put(location.removeprefix("file:///lake/"), msgspec.json.encode(document))
        await lake.catalog.registering.register(
            ("shop",), "copied", location, overwrite=False, key=lake.key(), author=AUTHOR
        )
        await lake.settle()
        await lake.store.delete(pointer_object(uuid))

    lake = asyncio.run(whole.copy())
    asyncio.run(half_registered(lake))
    report = asyncio.run(lake.verify())
    assert report.clean
    assert report.counts["under_way"] == 1


def test_what_was_purged_may_be_gone(whole: Lake) -> None:
    async def purged() -> tuple[Report, Report]:
        lake = await whole.copy()
        uuid = await purge(lake)
        there = await lake.verify(deep=True)
        await lake.store.delete(pointer_object(uuid))
        return there, await lake.verify(deep=True)

    there, gone = asyncio.run(purged())
    assert [(report.clean, report.counts["nameless_pointers"]) for report in (there, gone)] == [(True, 1), (True, 0)]


def test_a_table_is_looked_at_though_the_chain_is_broken(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(an_old_commit_gone(lake))
    asyncio.run(no_metadata(lake))
    assert codes(lake) == ["commit_missing", "metadata_missing"]


def test_a_table_is_looked_at_though_the_state_is_damaged(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(no_metadata(lake))
    asyncio.run(no_base(lake))
    assert codes(lake) == ["state_missing", "metadata_missing"]


def test_without_state_and_chain_no_table_is_guessed_at(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(no_base(lake))
    asyncio.run(an_old_commit_gone(lake))
    report = asyncio.run(lake.verify())
    assert [finding.code for finding in report.findings] == ["commit_missing", "state_missing"]
    assert report.notes[-1] == "tables were not looked at: neither the state nor the chain is whole"


def test_progress_is_told_of_every_stage(whole: Lake) -> None:
    seen: dict[str, tuple[int, int]] = {}
    lake = asyncio.run(whole.copy())
    asyncio.run(purge(lake))
    asyncio.run(verify(lake.catalog, deep=True, progress=lambda what, done, in_all: seen.update({what: (done, in_all)})))
    assert set(seen) == {"commits", "replay", "tables", "nameless_pointers", "receipts", "files of tables"}
    assert all(done == in_all > 0 for done, in_all in seen.values())


def test_a_commit_is_hashed_as_it_lies_there() -> None:
    """So that one of another version, with a field more, stays right."""

    async def of_another_version() -> Lake:
        lake = Lake()
        await lake.namespace("a")
        await lake.checkpoint()
        commit = (await lake.chain())[0]
        data = msgspec.json.encode({**msgspec.to_builtins(commit), "mood": "good"})
        await lake.put(commit_object(commit.id), data)
        await lake.edit_manifest(lambda m: m.update(last_commit_hash=fingerprint("catalog commit", data)))
        return lake

    assert codes(asyncio.run(of_another_version())) == []


def test_commits_below_a_break_are_not_said_to_have_never_counted(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(an_old_commit_gone(lake))
    asyncio.run(a_byte_of_the_base(lake))
    report = asyncio.run(lake.verify())
    assert report.counts["commits_beside_the_chain"] == 0
    assert report.counts["commits_not_looked_at"] == 2
    (altered,) = [finding for finding in report.findings if finding.code == "state_altered"]
    assert "the chain of commits is broken" in altered.todo


def test_the_chain_is_promised_where_it_is_whole(whole: Lake) -> None:
    lake = asyncio.run(whole.copy())
    asyncio.run(a_byte_of_the_base(lake))
    (altered,) = [finding for finding in asyncio.run(lake.verify()).findings if finding.code == "state_altered"]
    assert altered.todo == "run arco verify --repair, which makes it again from the chain of commits"
