"""What cannot be folded is kept with its reason, once, and counted."""

import msgspec
import pytest

from arco.fold.dead_letters import DeadLetter, letters
from arco.fold.rebuilding import rebuild
from arco.kernel.errors import CorruptObject
from arco.storage.keys import Head
from arco_sim.scenarios import fold_work
from arco_sim.scenarios.fold_work import UNHEARD_OF
from unit.fold.ground import HEAD, Ground, story


def stored(ground: Ground) -> list[DeadLetter]:
    return [msgspec.json.decode(ground.store.bytes_of(key), type=DeadLetter) for key in ground.store.named("dead_letters")]


def test_an_invalid_event_gets_a_letter_and_the_others_are_folded(monkeypatch):
    async def play(ground: Ground) -> None:
        monkeypatch.setattr(fold_work, "shred", refusing("a2", fold_work.shred))
        segment = await ground.append("a1", "a2", "b1")
        manifest = (await ground.folding().round(HEAD)).standing.manifest
        assert (manifest.events, manifest.refused, manifest.set_aside) == (2, 1, 0)
        assert await ground.things(manifest) == {"a": ("a1", "a1"), "b": ("b1", "b1")}
        (letter,) = stored(ground)
        assert (letter.segment, letter.head, letter.reason, letter.unknown) == (segment, "iceberg", "a2 is bad", False)
        assert msgspec.json.decode(letter.line)["id"] == letter.event_id

    story(play)


def refusing(value, shred):
    """The shredder of an Arco that does not take one value."""

    def refuse(head, event):
        if event.data.get("value") == value:
            raise fold_work.InvalidInput(f"{value} is bad")
        return shred(head, event)

    return refuse


def test_a_damaged_segment_gets_one_letter_and_holds_nobody_up():
    async def play(ground: Ground) -> None:
        await ground.store.damage(await ground.append("a1"))
        await ground.append("b1")
        folding = ground.folding()
        manifest = (await folding.round(HEAD)).standing.manifest
        assert (manifest.events, manifest.refused) == (1, 1)
        assert [gap.first for gap in manifest.gaps] == [1], "nobody can read its number"
        (letter,) = stored(ground)
        assert letter.event_id is None
        assert (await folding.round(HEAD)).segments == 0

    story(play)


def test_an_event_of_an_unknown_version_is_set_aside_and_a_rebuild_by_a_newer_arco_takes_it(monkeypatch):
    async def play(ground: Ground) -> None:
        monkeypatch.setattr("unit.fold.ground.HAPPENED", UNHEARD_OF)
        await ground.append("a1")
        folding = ground.folding()
        old = (await folding.round(HEAD)).standing.manifest
        assert (old.events, old.refused, old.set_aside) == (0, 0, 1)
        (letter,) = stored(ground)
        assert letter.unknown
        monkeypatch.setattr(fold_work, "HAPPENED", UNHEARD_OF)
        new = (await rebuild(folding, HEAD)).manifest
        assert (new.events, new.set_aside) == (1, 0)
        assert await ground.things(new) == {"a": ("a1", "a1")}

    story(play)


def test_the_same_refusal_is_the_same_letter():
    async def play(ground: Ground) -> None:
        await ground.store.damage(await ground.append("a1"))
        await ground.append("b1")
        await ground.folding(1).round(HEAD)
        await rebuild(ground.folding(2), HEAD)
        assert len(stored(ground)) == 1

    story(play)


def test_a_damaged_list_of_what_was_consumed_is_named():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        await ground.folding(1).round(HEAD)
        (key,) = ground.store.named("/consumed/")
        await ground.store.damage(key)
        with pytest.raises(CorruptObject, match=key):
            await ground.folding(2).round(HEAD)

    story(play)


def test_letters_are_listed_page_by_page_with_the_beginning_of_their_lines():
    async def play(ground: Ground) -> None:
        for _ in range(3):
            await ground.store.damage(await ground.append("a1"))
        await ground.folding().round(HEAD)
        store, scope, found, cursor = ground.store, ground.folding().heads.scope, [], None
        while True:
            page = await letters(store, scope, HEAD, limit=2, cursor=cursor)
            assert len(page.items) <= 2
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == [msgspec.structs.replace(one, line=one.line[:1000]) for one in stored(ground)]
        assert len(found) == 3
        assert (await letters(store, scope, Head.QUALITY, limit=2)).items == ()
        assert len((await letters(store, scope, limit=5)).items) == 3
        await store.damage(next(iter(store.named("dead_letters"))))
        with pytest.raises(CorruptObject, match="dead_letters"):
            await letters(store, scope, limit=5)

    story(play)
