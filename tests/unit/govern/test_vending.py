"""Credentials are made once for many, handed out while they have life before them, and forgotten after."""

import asyncio
from typing import Any

import pytest

from arco.govern.given_keys import GivenKeys
from arco.govern.places import ValidatedPlace, Validation
from arco.govern.vending import Access, Credential, Vending
from arco.kernel import limits
from arco.kernel.errors import BrokenInvariant, InvalidInput, Unavailable
from arco.kernel.secret import Secret
from arco.storage.roots import Root
from stand_ins.hand_clock import HandClock

from .checked_places import OTHER, base_of, place_of

ROOT = Root("s3", "lake", "")


class Maker:
    """Counts what it makes."""

    refresh_property = "client.refresh-credentials-endpoint"
    lasting_mark = None

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.made = 0
        self.silent = False
        self.lives_ms = 3_600_000

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential:
        await asyncio.sleep(0)
        if self.silent:
            raise Unavailable("no")
        self.made += 1
        return Credential(place.uri, {"k": Secret(str(self.made))}, {}, self._clock.now_ms() + self.lives_ms)


def ground() -> tuple[Vending, Maker, HandClock]:
    clock = HandClock()
    maker = Maker(clock)
    return Vending(Validation(ROOT, base_of(ROOT)), maker, Access.WRITE, clock), maker, clock


def test_clients_that_come_together_share_one() -> None:
    vending, maker, _ = ground()

    async def many() -> list[Credential]:
        return await asyncio.gather(*(vending.vend(place_of(ROOT)) for _ in range(20)))

    assert len({one.revealed()["k"] for one in asyncio.run(many())}) == 1
    assert maker.made == 1


def test_tables_do_not_share() -> None:
    vending, maker, _ = ground()

    async def two() -> tuple[Credential, Credential]:
        return await vending.vend(place_of(ROOT)), await vending.vend(place_of(ROOT, OTHER))

    first, second = asyncio.run(two())
    assert first.prefix != second.prefix
    assert maker.made == 2


def test_half_of_a_life_is_left_or_a_new_one_is_made() -> None:
    vending, maker, clock = ground()

    async def later(ms: int) -> Credential:
        clock.at_ms += ms
        return await vending.vend(place_of(ROOT))

    asyncio.run(later(0))
    asyncio.run(later(1_800_000))
    assert maker.made == 1
    fresh = asyncio.run(later(1))
    assert maker.made == 2
    assert fresh.expires_ms == clock.now_ms() + 3_600_000
    assert len(vending._held) == 1


def test_what_lives_shorter_than_was_asked_for_is_handed_out_again_too() -> None:
    """A machine's own token is hours old when it is exchanged, and a service may give less than it was asked for."""
    vending, maker, clock = ground()
    maker.lives_ms = 600_000
    for ms, made in ((0, 1), (1, 1), (299_999, 1), (1, 2)):
        clock.at_ms += ms
        asyncio.run(vending.vend(place_of(ROOT)))
        assert maker.made == made


def test_what_has_ended_is_forgotten_though_nobody_asks_for_it() -> None:
    vending, _, clock = ground()
    asyncio.run(vending.vend(place_of(ROOT)))
    clock.at_ms += 3_600_001
    asyncio.run(vending.vend(place_of(ROOT, OTHER)))
    assert list(vending._held) == [place_of(ROOT, OTHER).uri]


def test_no_more_are_held_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco.govern.vending.VENDED_CREDENTIALS_MAX", 1)
    assert limits.VENDED_CREDENTIALS_MAX == 10_000
    vending, _, _ = ground()
    for uuid in (OTHER, OTHER[:-1] + "2"):
        asyncio.run(vending.vend(place_of(ROOT, uuid)))
    assert len(vending._held) == 1


def test_a_failure_is_not_remembered() -> None:
    vending, maker, _ = ground()
    maker.silent = True
    with pytest.raises(Unavailable):
        asyncio.run(vending.vend(place_of(ROOT)))
    maker.silent = False
    assert asyncio.run(vending.vend(place_of(ROOT))).revealed() == {"k": "1"}


def test_what_nobody_validated_is_not_vended_for() -> None:
    vending, maker, _ = ground()
    for text in ("s3://lake/", None, object()):
        place: Any = text
        with pytest.raises(BrokenInvariant):
            asyncio.run(vending.vend(place))
    assert maker.made == 0


def test_keys_that_are_passed_on_do_not_end_and_cannot_be_narrowed() -> None:
    keys = GivenKeys({"s3.access-key-id": Secret("a")})
    credential = asyncio.run(keys.vend(place_of(ROOT), Access.WRITE))
    assert (credential.revealed(), credential.expires_ms) == ({"s3.access-key-id": "a"}, None)
    with pytest.raises(InvalidInput):
        asyncio.run(keys.vend(place_of(ROOT), Access.READ))
    with pytest.raises(InvalidInput):
        GivenKeys({})
