"""Heads, manifests and the root: what is published is whole, named by hash, and only moves forward."""

import msgspec
import pytest

from arco.fold.heads import Heads
from arco.fold.manifests import Link, Manifest, decode_manifest, encode_manifest
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import BeyondReach, CorruptObject, UnknownFormat
from arco.kernel.fingerprint import content_hash
from arco.storage.keys import Head
from arco.storage.port import Absent
from arco_sim.scenarios.fold_work import SCOPE
from stand_ins.hand_clock import ConstantEntropy
from unit.fold.ground import HEAD, Ground, story


def fresh(ground: Ground) -> Heads:
    """Heads as a process without memory reads them."""
    return Heads(ground.store, SCOPE, ground.clock, SeededEntropy("fresh"))


async def published(ground: Ground, count: int) -> list[Link]:
    folding, links = ground.folding(), []
    for number in range(count):
        ground.clock.at_ms += 1000
        await ground.append(f"a{number}")
        links.append((await folding.round(HEAD)).standing.link)
    return links


def test_every_manifest_names_the_one_before_it_by_hash():
    async def play(ground: Ground) -> None:
        links = await published(ground, 4)
        heads = fresh(ground)
        current = await heads.manifest(HEAD, links[-1])
        for link in reversed(links[:-1]):
            assert current.previous == link
            assert content_hash(ground.store.bytes_of(heads.manifest_key(HEAD, link.snapshot))) == link.checksum
            current = await heads.manifest(HEAD, link)
        assert current.previous is None
        assert current.sequence == 1

    story(play)


def test_a_damaged_manifest_is_refused_by_its_name():
    async def play(ground: Ground) -> None:
        (link,) = await published(ground, 1)
        key = fresh(ground).manifest_key(HEAD, link.snapshot)
        data = ground.store.bytes_of(key)
        await ground.store.delete(key)
        await ground.store.put(key, data.replace(b'"events":1', b'"events":2'), Absent())
        with pytest.raises(CorruptObject, match=f"{key} is not what was published"):
            await fresh(ground).read(HEAD)

    story(play)


def test_a_manifest_of_another_head_is_refused():
    async def play(ground: Ground) -> None:
        (link,) = await published(ground, 1)
        heads = fresh(ground)
        data = ground.store.bytes_of(heads.manifest_key(HEAD, link.snapshot))
        await ground.store.put(heads.manifest_key(Head.SEARCH, link.snapshot), data, Absent())
        with pytest.raises(CorruptObject, match="belongs to the head iceberg"):
            await heads.manifest(Head.SEARCH, link)

    story(play)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"format_version": 2}, UnknownFormat, "format version 2"),
        ({"format": "arco.fold_root"}, CorruptObject, "arco.fold_root"),
        ({"sequence": "1"}, CorruptObject, "not a manifest"),
        ({"sequence": 9}, CorruptObject, "another place in the chain"),
    ],
)
def test_what_is_not_such_a_manifest_is_refused(changes, error, said):
    async def play(ground: Ground) -> None:
        (link,) = await published(ground, 1)
        document = msgspec.json.decode(encode_manifest(await fresh(ground).manifest(HEAD, link)))
        data = msgspec.json.encode(document | changes)
        with pytest.raises(error, match=said):
            decode_manifest(data, Manifest, msgspec.structs.replace(link, checksum=content_hash(data)), "key")

    story(play)


def test_an_old_manifest_that_is_gone_is_beyond_reach_and_a_current_one_is_missing():
    async def play(ground: Ground) -> None:
        links = await published(ground, 2)
        for link in links:
            await ground.store.delete(fresh(ground).manifest_key(HEAD, link.snapshot))
        with pytest.raises(BeyondReach):
            await fresh(ground).manifest(HEAD, links[0])
        with pytest.raises(CorruptObject, match=f"{links[1].snapshot}.json is gone, and the head iceberg names it"):
            await fresh(ground).read(HEAD)

    story(play)


def test_rule_f2_a_manifest_that_nobody_names_is_in_nobodys_way():
    async def play(ground: Ground) -> None:
        one = ground.folding(1)
        await ground.append("a1")
        standing = await one.heads.read(HEAD)
        died = await ground.folding(2).round(HEAD)
        assert died.standing.manifest.sequence == 1
        # A folder that read the head before: it writes its manifest, loses, and goes on.
        manifest = msgspec.structs.replace(died.standing.manifest, **one.heads.place(standing, None))
        assert await one.heads.publish(standing, manifest) is None
        await ground.append("a2")
        assert (await one.round(HEAD)).standing.manifest.sequence == 2

    story(play)


def test_a_name_that_is_taken_is_drawn_again():
    async def play(ground: Ground) -> None:
        await published(ground, 1)
        heads = Heads(ground.store, SCOPE, ground.clock, ConstantEntropy())
        standing = await heads.read(HEAD)
        twin = Heads(ground.store, SCOPE, ground.clock, ConstantEntropy())
        first = msgspec.structs.replace(standing.manifest, **heads.place(standing, None))
        second = msgspec.structs.replace(standing.manifest, **twin.place(standing, None), events=99)
        assert first.snapshot == second.snapshot
        assert await heads.publish(standing, first) is not None
        assert await twin.publish(standing, second) is None

    story(play)


def test_the_root_names_a_cut_through_all_heads():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        seen = [(await folding.round(head)).standing for head in (HEAD, Head.SEARCH)]
        root = await folding.heads.publish_cut(seen)
        assert {one.head: one.manifest for one in root.manifest.heads} == {one.head: one.link for one in seen}
        ground.store.requests.clear()
        assert (await folding.heads.publish_cut(seen)).manifest == root.manifest
        assert len(ground.store.requests) == 1, "nothing changed: the root alone tells"
        assert (await fresh(ground).read_root()).manifest == root.manifest

    story(play)


def test_a_root_that_was_left_behind_is_brought_up_to_date():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        await folding.round(HEAD)
        await folding.heads.publish_cut()
        await ground.append("a2")
        await folding.round(HEAD)  # and dies before the root
        root = await fresh(ground).publish_cut()
        assert (root.manifest.sequence, root.manifest.heads[0].manifest.sequence) == (2, 2)

    story(play)
