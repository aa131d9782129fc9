"""The catalog's hazards by their numbers: what an obvious variant of the design would get wrong.

Hazards 3, 5 and 6 are the lease's and the ledger's; 11 is in `test_rules_of_names.py`.
"""

import ast
from pathlib import Path

import msgspec
import pytest

import arco
from arco.catalog.manifest import Author, Commit, Manifest
from arco.catalog.operations import CreateNamespace, DropNamespace
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.limits import TURN_LEASE_S
from arco.storage.keys import CatalogCommitKey
from arco.storage.port import Always
from unit.catalog.ground import COMMIT, POINTER, SCOPE, Ground, story

SOURCE = Path(arco.__file__).parent
ONLY_UPKEEP_DELETES = ("storage", "upkeep")


@story
async def test_hazard_01_a_retry_whose_commit_others_have_buried_is_not_done_again():
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found("a")
    swing = one.line.delay("put", POINTER)
    await swing.holds(one.commit("a", "K"))
    await swing.land()
    one.line.cut()
    ground.long_after()
    for label in ("x", "y"):
        await two.commit("a", label)
        await two.settle()
    await three.commit("a", "K")
    assert [number for _, number in (await ground.audit()).landings(three.file_of("K"))] == [1]
    assert (await three.properties("a"))["last"] == "y"


@story
async def test_hazard_02_and_19_a_stolen_turn_loses_no_update():
    """Both servers believe that it is their turn; each commits, and neither overwrites the other."""
    ground = Ground()
    one, two = ground.server(take_turns=True), ground.server(take_turns=True)
    await one.found()
    written = one.line.delay("put", COMMIT)
    first = await written.holds(one.make_namespace("one", "K1"))
    ground.clock.at_ms += round(TURN_LEASE_S + 1) * 1000
    ground.clock.elapsed_s += TURN_LEASE_S + 1
    await two.make_namespace("two", "K2")
    await written.answer()
    await first
    names = (await ground.server().ws.tier1.current()).names
    assert {("one",), ("two",)} <= names.namespaces.keys()


@story
async def test_hazard_12_an_ambiguous_error_removes_nothing():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await one.load("a")
    one.line.lose("put", POINTER)
    one.line.fail("get", POINTER, times=100)
    with pytest.raises(OutcomeUnknown):
        await one.commit("a", "K")
    assert not [asked for asked in one.line.asked if asked.startswith("delete")]
    assert (await two.properties("a"))["last"] == "K"


def test_hazard_12_only_upkeep_deletes():
    """No call of `delete` on a store anywhere else: whoever cannot delete cannot delete too early."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in ONLY_UPKEEP_DELETES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("delete", "unlink")
        # An entry of a manifest that says "no longer part of the table" is no deletion; the socket of a process is no object.
        if ast.unparse(node.func.value) != "writer" and path.name != "local_wake_ups.py"
        # The mover of the fold takes a segment from one name to another, and only after its copy is there (hazard 15).
        # A reader's own copies of files that lie in the bucket are no objects.
        if path.relative_to(SOURCE).as_posix() not in ("fold/moving.py", "read/files.py")
    ]
    assert not found


@story
async def test_hazard_14_a_pointer_that_returns_to_what_it_was_is_not_the_same():
    """Dropped and restored, or only touched: the content repeats, the bytes do not, so no old swing can match."""
    ground = Ground()
    one = ground.server()
    await one.found("a")
    uuid = (await one.load("a")).uuid
    bodies = []
    for _ in range(3):
        pointer = await one.ws.pointers.read(uuid)
        assert pointer is not None
        await one.ws.pointers.touch(pointer)
        found = await ground.audit()
        bodies.append(next(data for key, data in found.objects.items() if POINTER in key))
        assert found.pointers[uuid] == pointer.value
    assert len(set(bodies)) == 3


def some_commit() -> Commit:
    operations = (CreateNamespace(key_hash="k", id="i", levels=("a",), properties={"p": "1"}),)
    return Commit("id", 2, "before", "hash before", 1000, "somebody", "client", operations)


def test_hazard_20_a_commits_hash_covers_every_field_and_its_predecessor():
    whole = some_commit()
    other = {
        "id": "other",
        "sequence": 3,
        "previous_id": "other",
        "previous_hash": "other",
        "at_ms": 1001,
        "author": "other",
        "client_id": "other",
        "operations": (DropNamespace(key_hash="k", levels=("a",)),),
        "authors": (Author("other"),),
    }
    assert set(other) == set(Commit.__struct_fields__)
    for name, value in other.items():
        assert msgspec.structs.replace(whole, **{name: value}).hash() != whole.hash(), name
    assert msgspec.structs.replace(whole, client_id=None).hash() != whole.hash()
    assert Manifest().following(whole).last_commit_hash == whole.hash()


@story
async def test_hazard_20_a_changed_commit_breaks_the_chain_after_it():
    """Whichever commit is changed, and in whichever field: the chain shows it."""
    ground = Ground()
    one = ground.server()
    await one.found("a")
    await one.rename("a", "b", "K")
    sound = await ground.audit()
    assert not sound.breaks
    assert len(sound.chain) == 3
    for commit in sound.chain:
        key = str(CatalogCommitKey(SCOPE, commit.id))
        for change in ({"author": "nobody"}, {"at_ms": commit.at_ms + 1}, {"client_id": "x"}):
            await ground.store.put(key, msgspec.structs.replace(commit, **change).encode(), Always())
            assert (await ground.audit()).breaks, (commit.sequence, change)
        await ground.store.put(key, commit.encode(), Always())
    assert not (await ground.audit()).breaks
