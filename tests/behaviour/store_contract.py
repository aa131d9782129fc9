"""The contract of an object store, case by case. A store is supported if every case passes.

Each case is a coroutine named after its promise. `CASES` holds for every store; `NETWORK_CASES` are about replies that get
lost between us and a server, so they need one; `SIGNING_CASES` need a store that signs links.
"""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat
from arco.kernel.ids import HolderId, UlidSource
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.lease import Lease
from arco.storage.paging import walk
from arco.storage.port import Absent, Always, Landed, Lost, Matches, SignedMethod, Unknown
from behaviour.ground import CLOCK, ENTROPY, Ground, Number
from servers.fault_proxy import Fault

Case = Callable[[Ground], Awaitable[None]]

ODD_CHARACTERS = " !\"#$%&'()*+,-.:;<=>?@[]^_`{|}~"
HOSTILE_KEYS = (
    "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "../a", "a/..", "a\\b", "a\nb", "a\0b", "a\x7fb",
    "x" * 256, "é" * 200 + "/a", "/".join(["y" * 200] * 6), ".arco/tmp/x", "\ud800",
)  # fmt: skip


# Reading and plain writing


async def an_absent_object_is_none(ground: Ground) -> None:
    assert await ground.store.get(ground.key("nothing")) is None


async def the_head_of_an_absent_object_is_none(ground: Ground) -> None:
    assert await ground.store.head(ground.key("nothing")) is None


async def a_range_of_an_absent_object_is_none(ground: Ground) -> None:
    assert await ground.store.get_range(ground.key("nothing"), 0, 10) is None


async def what_was_put_is_got(ground: Ground) -> None:
    await ground.landed("a", b"hello")
    assert (await ground.got("a")).data == b"hello"


async def every_byte_survives(ground: Ground) -> None:
    data = bytes(range(256)) * 3
    await ground.landed("a", data)
    assert (await ground.got("a")).data == data


async def an_empty_object_is_an_object(ground: Ground) -> None:
    await ground.landed("a", b"")
    found = await ground.got("a")
    assert found.data == b""
    assert found.info.size_bytes == 0


async def sixteen_mebibytes_survive(ground: Ground) -> None:
    data = bytes(range(256)) * (16 * 1024 * 4)
    await ground.landed("a", data)
    assert (await ground.got("a")).data == data


async def the_head_tells_the_size(ground: Ground) -> None:
    await ground.landed("a", b"12345")
    head = await ground.store.head(ground.key("a"))
    assert head is not None
    assert head.size_bytes == 5


async def get_head_and_put_agree_on_the_version(ground: Ground) -> None:
    version = await ground.landed("a", b"x")
    head = await ground.store.head(ground.key("a"))
    assert head is not None
    assert (await ground.got("a")).version == head.version == version


async def an_overwrite_replaces_the_bytes(ground: Ground) -> None:
    await ground.landed("a", b"longer than the next")
    await ground.landed("a", b"short", Always())
    assert (await ground.got("a")).data == b"short"


async def an_overwrite_changes_the_version(ground: Ground) -> None:
    first = await ground.landed("a", b"one")
    assert await ground.landed("a", b"two", Always()) != first


async def an_overwrite_needs_no_object(ground: Ground) -> None:
    await ground.landed("a", b"one", Always())
    assert (await ground.got("a")).data == b"one"


async def the_time_of_a_write_is_the_stores(ground: Ground) -> None:
    await ground.landed("a", b"one")
    await ground.landed("b", b"two")
    first, second = await ground.got("a"), await ground.got("b")
    assert 0 < first.info.modified_ms <= second.info.modified_ms + 1000


async def a_write_is_read_at_once_by_another_client(ground: Ground) -> None:
    for number in range(20):
        await ground.landed("a", str(number).encode(), Always())
        assert (await ground.got("a")).data == str(number).encode()


async def many_reads_at_once_agree(ground: Ground) -> None:
    await ground.landed("a", b"same")
    found = await asyncio.gather(*(ground.got("a") for _ in range(32)))
    assert {one.data for one in found} == {b"same"}


async def a_reader_never_sees_half_a_write(ground: Ground) -> None:
    bodies = [bytes([number]) * 200_000 for number in range(8)]
    await ground.landed("a", bodies[0])

    async def write() -> None:
        for body in bodies:
            await ground.landed("a", body, Always())

    async def read() -> None:
        for _ in range(12):
            assert (await ground.got("a")).data in bodies

    await asyncio.gather(write(), read(), read())


# Names


async def every_odd_character_may_stand_in_a_name(ground: Ground) -> None:
    names = [f"x{character}y" for character in ODD_CHARACTERS]
    for name in names:
        await ground.landed(name, name.encode())
    for name in names:
        assert (await ground.got(name)).data == name.encode(), name
    assert await ground.names() == sorted(names, key=str.encode)


async def every_script_may_stand_in_a_name(ground: Ground) -> None:
    names = ["größe", "таблица", "表", "جدول", "😀", "e\u0301"]
    for name in names:
        await ground.landed(name, name.encode())
    assert await ground.names() == sorted(names, key=str.encode)


async def the_two_forms_of_an_accent_are_two_names(ground: Ground) -> None:
    await ground.landed("\u00e9", b"one code point")
    await ground.landed("e\u0301", b"two code points")
    assert (await ground.got("\u00e9")).data == b"one code point"
    assert (await ground.got("e\u0301")).data == b"two code points"


async def upper_and_lower_case_are_two_names(ground: Ground) -> None:
    await ground.landed("Name", b"upper")
    await ground.landed("name", b"lower")
    assert (await ground.got("Name")).data == b"upper"


async def percent_signs_are_not_decoded(ground: Ground) -> None:
    await ground.landed("a%2Fb", b"escaped")
    await ground.landed("a%20b", b"blank")
    assert await ground.store.get(ground.key("a b")) is None
    assert await ground.names() == ["a%20b", "a%2Fb"]


async def a_name_of_the_greatest_length_works(ground: Ground) -> None:
    name = "/".join(["n" * 200] * 4)
    await ground.landed(name, b"long")
    assert (await ground.got(name)).data == b"long"


async def a_segment_of_the_greatest_length_works(ground: Ground) -> None:
    name = "n" * 255
    await ground.landed(name, b"long")
    assert await ground.names() == [name]


async def a_name_may_be_deep(ground: Ground) -> None:
    name = "/".join("abcdefghijklmnopqrstuvwxyz")
    await ground.landed(name, b"deep")
    assert await ground.names("a/b/c/") == [name]


async def a_name_may_start_with_a_dot_or_underscore(ground: Ground) -> None:
    for name in (".hidden", "_delta_log", "-dash", "...three"):
        await ground.landed(name, b"x")
    assert await ground.names() == ["-dash", "...three", ".hidden", "_delta_log"]


async def hostile_names_are_refused_by_every_call(ground: Ground) -> None:
    for key in HOSTILE_KEYS:
        calls: tuple[Callable[[str], Awaitable[object]], ...] = (
            ground.store.get,
            ground.store.head,
            ground.store.delete,
            lambda name: ground.store.get_range(name, 0, 1),
            lambda name: ground.store.put(name, b"x", Always()),
        )
        for call in calls:
            with pytest.raises(InvalidInput):
                await call(key)


async def a_prefix_that_is_no_folder_is_refused(ground: Ground) -> None:
    for prefix in ("a", "a/b", "/", "a//", "../"):
        with pytest.raises(InvalidInput):
            await ground.store.list_page(prefix)


# Ranges


async def a_range_from_the_middle(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    assert await ground.store.get_range(ground.key("a"), 3, 4) == b"3456"


async def a_range_of_the_whole(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    assert await ground.store.get_range(ground.key("a"), 0, 10) == b"0123456789"


async def a_range_past_the_end_is_shorter(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    assert await ground.store.get_range(ground.key("a"), 8, 100) == b"89"


async def a_range_beyond_the_end_is_empty(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    assert await ground.store.get_range(ground.key("a"), 100, 5) == b""


async def a_range_of_nothing_is_empty(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    assert await ground.store.get_range(ground.key("a"), 3, 0) == b""


# Create only if absent


async def a_create_of_an_absent_name_lands(ground: Ground) -> None:
    assert isinstance(await ground.put("a", b"first", Absent()), Landed)


async def a_create_of_a_taken_name_is_lost_and_changes_nothing(ground: Ground) -> None:
    version = await ground.landed("a", b"first")
    await ground.lost("a", b"second", Absent())
    found = await ground.got("a")
    assert (found.data, found.version) == (b"first", version)


async def one_raw_create_of_a_taken_name_never_says_landed(ground: Ground) -> None:
    await ground.landed("a", b"first")
    assert isinstance(await ground.store.put(ground.key("a"), b"second", Absent()), Lost | Unknown)


async def a_create_after_a_delete_lands(ground: Ground) -> None:
    await ground.landed("a", b"first")
    await ground.store.delete(ground.key("a"))
    await ground.landed("a", b"second")
    assert (await ground.got("a")).data == b"second"


async def of_many_creators_of_one_name_exactly_one_wins(ground: Ground) -> None:
    rivals = ground.contention.creators
    for number in range(ground.contention.keys):
        name = f"race-{number}"
        outcomes = await asyncio.gather(*(ground.put(name, f"creator {one}".encode()) for one in range(rivals)))
        winners = [one for one, outcome in enumerate(outcomes) if isinstance(outcome, Landed)]
        losers = [outcome for outcome in outcomes if isinstance(outcome, Lost)]
        assert len(winners) == 1, (name, outcomes)
        assert len(losers) == rivals - 1
        assert (await ground.got(name)).data == f"creator {winners[0]}".encode()


async def a_create_leaves_its_neighbours_alone(ground: Ground) -> None:
    await ground.landed("a", b"a")
    await ground.landed("ab", b"ab")
    await ground.landed("a.b", b"a.b")
    assert await ground.names() == ["a", "a.b", "ab"]


# Compare and swap


async def a_match_of_the_current_version_lands(ground: Ground) -> None:
    version = await ground.landed("a", b"one")
    await ground.landed("a", b"two", Matches(version))
    assert (await ground.got("a")).data == b"two"


async def a_match_of_a_stale_version_is_lost_and_changes_nothing(ground: Ground) -> None:
    first = await ground.landed("a", b"one")
    second = await ground.landed("a", b"two", Matches(first))
    await ground.lost("a", b"three", Matches(first))
    found = await ground.got("a")
    assert (found.data, found.version) == (b"two", second)


async def a_match_of_a_version_that_was_read_lands(ground: Ground) -> None:
    await ground.landed("a", b"one")
    await ground.landed("a", b"two", Matches((await ground.got("a")).version))
    head = await ground.store.head(ground.key("a"))
    assert head is not None
    await ground.landed("a", b"three", Matches(head.version))


async def a_match_on_an_absent_object_is_lost_and_creates_nothing(ground: Ground) -> None:
    version = await ground.landed("other", b"x")
    await ground.lost("a", b"one", Matches(version))
    assert await ground.store.get(ground.key("a")) is None


async def a_match_after_a_delete_is_lost(ground: Ground) -> None:
    version = await ground.landed("a", b"one")
    await ground.store.delete(ground.key("a"))
    await ground.lost("a", b"two", Matches(version))
    assert await ground.store.get(ground.key("a")) is None


async def a_match_after_a_new_creation_is_lost(ground: Ground) -> None:
    version = await ground.landed("a", b"one")
    await ground.store.delete(ground.key("a"))
    await ground.landed("a", b"reborn")
    await ground.lost("a", b"two", Matches(version))
    assert (await ground.got("a")).data == b"reborn"


async def the_version_of_another_object_does_not_match(ground: Ground) -> None:
    await ground.landed("a", b"one")
    other = await ground.landed("b", b"two")
    await ground.lost("a", b"three", Matches(other))


async def of_two_swaps_from_one_version_one_lands(ground: Ground) -> None:
    for number in range(10):
        version = await ground.landed(f"a{number}", b"base")
        outcomes = await asyncio.gather(
            *(ground.put(f"a{number}", f"rival {one}".encode(), Matches(version)) for one in range(2))
        )
        assert sum(isinstance(outcome, Landed) for outcome in outcomes) == 1, outcomes


async def a_chain_of_swaps_holds(ground: Ground) -> None:
    version = await ground.landed("a", b"0")
    for number in range(1, 31):
        version = await ground.landed("a", str(number).encode(), Matches(version))
    assert (await ground.got("a")).data == b"30"


async def a_swap_may_grow_and_shrink(ground: Ground) -> None:
    version = await ground.landed("a", b"x")
    for size in (100_000, 1, 2_000_000, 0, 7):
        version = await ground.landed("a", b"y" * size, Matches(version))
        assert len((await ground.got("a")).data) == size


async def a_counter_with_many_workers_counts_every_increment(ground: Ground) -> None:
    workers, each = ground.contention.workers, ground.contention.increments_each

    async def work() -> None:
        shared = ground.number("counter")
        for _ in range(each):
            await shared.update(lambda held: 1 if held is None else held.value + 1)

    await asyncio.gather(*(work() for _ in range(workers)))
    final = await ground.number("counter").read()
    assert final is not None
    assert (final.value, final.generation) == (workers * each, workers * each)


# Compare-and-swap objects


async def a_state_that_returns_does_not_match_its_past(ground: Ground) -> None:
    shared = ground.number("a")
    first = await _swung(shared.create(0))
    second = await _swung(shared.swap(first, 1))
    await _swung(shared.swap(second, 0))
    assert isinstance(await shared.swap(first, 5), Lost)


async def a_document_reads_back_as_it_was_written(ground: Ground) -> None:
    written = await _swung(ground.number("a").create(41, epoch=3))
    assert await ground.number("a").read() == written


async def a_second_first_state_is_lost(ground: Ground) -> None:
    await _swung(ground.number("a").create(1))
    assert isinstance(await ground.number("a").create(2), Lost)


async def an_unknown_format_version_is_refused(ground: Ground) -> None:
    class Newer(Number):
        def decode(self, format_version: int, fields: dict[str, object]) -> int:
            raise UnknownFormat(f"version {format_version}")

    await _swung(ground.number("a").create(1))
    with pytest.raises(UnknownFormat):
        await CasObject(ground.store, ground.key("a"), Newer(), CLOCK, ENTROPY).read()


async def another_kind_of_document_is_refused(ground: Ground) -> None:
    class Other(Number):
        format = "test.other"

    await _swung(ground.number("a").create(1))
    with pytest.raises(UnknownFormat):
        await CasObject(ground.store, ground.key("a"), Other(), CLOCK, ENTROPY).read()


async def bytes_that_are_no_document_are_refused(ground: Ground) -> None:
    for number, data in enumerate((b"", b"[]", b"{}", b"\xff", msgspec.json.encode({"format": "test.number"}))):
        await ground.landed(f"a{number}", data)
        with pytest.raises(CorruptObject):
            await ground.number(f"a{number}").read()


async def a_lease_has_one_holder_and_growing_epochs(ground: Ground) -> None:
    ulids = UlidSource(CLOCK, ENTROPY)
    first, second = (
        Lease(ground.store, ground.key("lease"), HolderId(ulids.next()), CLOCK, ENTROPY, ttl_s=600) for _ in range(2)
    )
    tenure = await first.try_acquire()
    assert tenure is not None
    assert await second.try_acquire() is None
    tenure = await first.extend(tenure)
    assert await first.release(tenure)
    following = await second.try_acquire()
    assert following is not None
    assert following.epoch > tenure.epoch
    assert not await first.release(tenure), "a release must not free the next holder's lease"


# Deleting


async def a_deleted_object_is_gone(ground: Ground) -> None:
    await ground.landed("a", b"x")
    await ground.store.delete(ground.key("a"))
    assert await ground.store.get(ground.key("a")) is None
    assert await ground.names() == []


async def deleting_what_is_not_there_is_fine(ground: Ground) -> None:
    await ground.store.delete(ground.key("nothing"))
    await ground.store.delete(ground.key("deep/er/nothing"))


async def a_delete_leaves_its_neighbours_alone(ground: Ground) -> None:
    for name in ("a", "ab", "b/a"):
        await ground.landed(name, b"x")
    await ground.store.delete(ground.key("a"))
    assert await ground.names() == ["ab", "b/a"]


# Listing


async def an_empty_folder_lists_nothing(ground: Ground) -> None:
    assert await ground.names() == []
    assert await ground.names("no/such/folder/") == []


async def a_folder_is_listed_in_the_order_of_bytes(ground: Ground) -> None:
    names = ["a", "a-b", "a.b", "a0", "aa", "b", "B", "z", "ä", "€", "😀", "a b"]
    for name in names:
        await ground.landed(name, b"x")
    assert await ground.names() == sorted(names, key=str.encode)


async def a_tree_is_listed_whole_whatever_the_pages(ground: Ground) -> None:
    names = [f"a{after}{leaf}" for after in ("-b", ".b", "/b/", "/b-/", "0/", "/c") for leaf in ("x", "y", "z")]
    for name in names:
        await ground.landed(name, b"x")
    for page_keys in (1, 2, 3, 7, 100):
        found = [entry.key async for entry in walk(ground.store, f"{ground.folder}/", page_keys=page_keys)]
        assert sorted(found) == sorted(ground.key(name) for name in names), page_keys


async def a_listing_stays_in_its_folder(ground: Ground) -> None:
    for name in ("a/1", "ab/1", "a-/1", "b/1"):
        await ground.landed(name, b"x")
    assert await ground.names("a/") == ["a/1"]


async def a_listing_tells_sizes_and_times(ground: Ground) -> None:
    await ground.landed("a", b"12345")
    page = await ground.store.list_page(f"{ground.folder}/")
    assert [entry.size_bytes for entry in page.entries] == [5]
    assert abs(page.entries[0].modified_ms - (await ground.got("a")).info.modified_ms) < 1000


async def a_listing_goes_on_after_a_name(ground: Ground) -> None:
    for name in ("a", "b", "c/1", "c/2", "d"):
        await ground.landed(name, b"x")
    page = await ground.store.list_page(f"{ground.folder}/", after=ground.key("c/1"))
    assert [entry.key for entry in page.entries] == [ground.key("c/2"), ground.key("d")]


async def a_listing_goes_on_after_a_name_that_is_gone(ground: Ground) -> None:
    for name in ("a", "c"):
        await ground.landed(name, b"x")
    page = await ground.store.list_page(f"{ground.folder}/", after=ground.key("b"))
    assert [entry.key for entry in page.entries] == [ground.key("c")]


async def a_page_says_whether_more_follows(ground: Ground) -> None:
    for name in ("a", "b", "c"):
        await ground.landed(name, b"x")
    prefix = f"{ground.folder}/"
    whole = await ground.store.list_page(prefix, limit=3)
    assert (len(whole.entries), whole.next_after) == (3, None)
    part = await ground.store.list_page(prefix, limit=2)
    assert (len(part.entries), part.next_after) == (2, ground.key("b"))


async def five_thousand_names_are_listed_in_pages(ground: Ground) -> None:
    names = [f"p/{number:05}" for number in range(5000)]
    for start in range(0, 5000, 64):
        batch = names[start : start + 64]
        await asyncio.gather(*(ground.store.put(ground.key(name), b"", Always()) for name in batch))
    found = [entry.key async for entry in walk(ground.store, f"{ground.folder}/p/", page_keys=700)]
    assert found == [ground.key(name) for name in names]


async def a_listing_never_shows_what_is_being_written(ground: Ground) -> None:
    async def write(number: int) -> None:
        await ground.landed(f"w/{number}", b"y" * 100_000)

    async def look() -> None:
        for _ in range(5):
            for entry in (await ground.store.list_page(f"{ground.folder}/")).entries:
                assert entry.key.startswith(ground.key("w/"))
                assert entry.size_bytes == 100_000

    await asyncio.gather(*(write(number) for number in range(8)), look())


# Signed links


async def a_signed_link_reads(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    link = await ground.store.sign(ground.key("a"), SignedMethod.GET, 60)
    assert await _fetch(link) == b"0123456789"
    assert await _fetch(link, {"Range": "bytes=2-4"}) == b"234"


async def a_signed_link_writes(ground: Ground) -> None:
    link = await ground.store.sign(ground.key("a"), SignedMethod.PUT, 60)
    await _fetch(link, {"x-ms-blob-type": "BlockBlob"} if ground.adapter == "azurite" else {}, "PUT", b"by link")
    assert (await ground.got("a")).data == b"by link"


async def a_signed_link_reads_its_own_object_and_does_nothing_else(ground: Ground) -> None:
    await ground.landed("mine", b"mine")
    await ground.landed("next", b"next")
    link = await ground.store.sign(ground.key("mine"), SignedMethod.GET, 60)
    place, _, proof = link.partition("?")
    assert place.endswith("/mine")
    spoilt, found = re.subn("((?:sig|Signature)=)(.)", lambda one: one[1] + ("a" if one[2] != "a" else "b"), proof)
    assert found == 1
    for wrong in (f"{place.removesuffix('mine')}next?{proof}", place, f"{place}?{spoilt}"):
        assert await _refused(wrong)
    assert await _refused(link, "PUT", b"over it")
    assert await _refused(link, "DELETE")
    assert (await ground.got("mine")).data == b"mine"


async def a_signed_link_ends(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    link = await ground.store.sign(ground.key("a"), SignedMethod.GET, 1)
    await CLOCK.sleep(2.5)  # a store may count whole seconds
    assert await _refused(link)


async def a_link_for_too_long_or_too_short_is_refused(ground: Ground) -> None:
    for ttl_s in (0, -1, 8 * 24 * 3600):
        with pytest.raises(InvalidInput):
            await ground.store.sign(ground.key("a"), SignedMethod.GET, ttl_s)


async def a_store_that_cannot_sign_says_so(ground: Ground) -> None:
    await ground.landed("a", b"0123456789")
    with pytest.raises(InvalidInput, match="sign"):
        await ground.store.sign(ground.key("a"), SignedMethod.GET, 60)


# Replies that get lost


def _create_survives(fault: Fault) -> Case:
    async def case(ground: Ground) -> None:
        assert ground.proxied is not None
        ground.spoil(fault)
        outcome = await ground.settled(ground.proxied, "a", b"mine", Absent())
        assert isinstance(outcome, Landed), outcome
        assert (await ground.got("a")).data == b"mine"

    case.__name__ = f"a_create_survives_{fault.name.lower()}"
    return case


def _swap_survives(fault: Fault) -> Case:
    async def case(ground: Ground) -> None:
        assert ground.proxied is not None
        version = await ground.landed("a", b"base")
        ground.spoil(fault)
        outcome = await ground.settled(ground.proxied, "a", b"mine", Matches(version))
        assert isinstance(outcome, Landed), outcome
        found = await ground.got("a")
        assert (found.data, found.version) == (b"mine", outcome.version)

    case.__name__ = f"a_swap_survives_{fault.name.lower()}"
    return case


_SPOILED = (
    Fault.CUT_AFTER,
    Fault.RESET_AFTER,
    Fault.HALF_AFTER,
    Fault.STATUS_500_AFTER,
    Fault.STATUS_503_AFTER,
    Fault.STATUS_503_BEFORE,
    Fault.STATUS_429_BEFORE,
    Fault.STATUS_409_BEFORE,
    Fault.REFUSE_BEFORE,
)


async def a_raw_write_whose_reply_is_cut_is_unknown(ground: Ground) -> None:
    assert ground.proxied is not None
    for fault in (Fault.CUT_AFTER, Fault.RESET_AFTER, Fault.STATUS_500_AFTER, Fault.STATUS_503_AFTER):
        ground.spoil(fault)
        outcome = await ground.proxied.put(ground.key(fault.name), b"mine", Absent())
        assert isinstance(outcome, Unknown), (fault, outcome)
        assert (await ground.got(fault.name)).data == b"mine"


async def a_raw_write_is_sent_once(ground: Ground) -> None:
    assert ground.proxied is not None
    assert ground.proxy is not None
    ground.spoil(Fault.STATUS_500_AFTER)
    await ground.proxied.put(ground.key("a"), b"mine", Absent())
    sent = [path for method, path in ground.proxy.requests if method == "PUT" and ground.key("a") in path]
    assert len(sent) == 1


async def a_contended_create_with_nothing_there_is_not_lost(ground: Ground) -> None:
    assert ground.proxied is not None
    ground.spoil(Fault.STATUS_409_BEFORE, times=2)
    assert isinstance(await ground.settled(ground.proxied, "a", b"mine", Absent()), Landed)


async def a_swap_that_others_overtook_still_knows_that_it_landed(ground: Ground) -> None:
    assert ground.proxied is not None
    shared = ground.number("a")
    base = await _swung(shared.create(0))
    through = CasObject(ground.proxied, shared.key, Number(), CLOCK, ENTROPY)
    ground.spoil(Fault.STATUS_500_AFTER)

    async def overtake() -> None:
        while True:
            held = await _read(shared)
            if held.value == 1:
                await shared.swap(held, 2)
                return

    outcome, _ = await asyncio.gather(through.swap(base, 1), overtake())
    assert isinstance(outcome, Swung | Overtaken), outcome


async def a_lost_swap_is_lost_though_its_reply_was_spoiled(ground: Ground) -> None:
    assert ground.proxied is not None
    shared = ground.number("a")
    base = await _swung(shared.create(0))
    await _swung(shared.swap(base, 1))
    through = CasObject(ground.proxied, shared.key, Number(), CLOCK, ENTROPY)
    ground.spoil(Fault.STATUS_500_AFTER)
    assert isinstance(await through.swap(base, 2), Lost)
    assert (await _read(shared)).value == 1


async def a_slow_reply_is_waited_for(ground: Ground) -> None:
    assert ground.proxied is not None
    ground.spoil(Fault.SLOW, delay_s=0.3)
    assert isinstance(await ground.proxied.put(ground.key("a"), b"mine", Absent()), Landed)


async def a_read_is_repeated_until_it_is_answered(ground: Ground) -> None:
    assert ground.proxied is not None
    await ground.landed("a", b"there")
    ground.spoil(Fault.STATUS_503_BEFORE, "GET", times=2)
    found = await ground.proxied.get(ground.key("a"))
    assert found is not None
    assert found.data == b"there"


async def a_listing_is_repeated_until_it_is_answered(ground: Ground) -> None:
    assert ground.proxied is not None
    await ground.landed("a", b"there")
    ground.spoil(Fault.STATUS_503_BEFORE, "GET", times=2)
    page = await ground.proxied.list_page(f"{ground.folder}/")
    assert [entry.key for entry in page.entries] == [ground.key("a")]


async def counters_survive_a_rain_of_faults(ground: Ground) -> None:
    assert ground.proxied is not None
    for fault in (*_SPOILED, *_SPOILED[:4]):
        ground.spoil(fault)
    through = CasObject(ground.proxied, ground.key("n"), Number(), CLOCK, ENTROPY)
    for _ in range(20):
        await through.update(lambda held: 1 if held is None else held.value + 1)
    assert (await _read(ground.number("n"))).value == 20


async def _swung(outcome: Awaitable[object]) -> Held[int]:
    done = await outcome
    assert isinstance(done, Swung), done
    return done.held


async def _read(shared: CasObject[int]) -> Held[int]:
    held = await shared.read()
    assert held is not None
    return held


async def _fetch(link: str, headers: dict[str, str] | None = None, method: str = "GET", body: bytes | None = None) -> bytes:
    request = urllib.request.Request(link, headers=headers or {}, method=method, data=body)

    def ask() -> bytes:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    return await asyncio.to_thread(ask)


async def _refused(link: str, method: str = "GET", body: bytes | None = None) -> bool:
    try:
        await _fetch(link, {}, method, body)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code in {400, 401, 403, 404}
    return False


CASES: tuple[Case, ...] = (
    an_absent_object_is_none,
    the_head_of_an_absent_object_is_none,
    a_range_of_an_absent_object_is_none,
    what_was_put_is_got,
    every_byte_survives,
    an_empty_object_is_an_object,
    sixteen_mebibytes_survive,
    the_head_tells_the_size,
    get_head_and_put_agree_on_the_version,
    an_overwrite_replaces_the_bytes,
    an_overwrite_changes_the_version,
    an_overwrite_needs_no_object,
    the_time_of_a_write_is_the_stores,
    a_write_is_read_at_once_by_another_client,
    many_reads_at_once_agree,
    a_reader_never_sees_half_a_write,
    every_odd_character_may_stand_in_a_name,
    every_script_may_stand_in_a_name,
    the_two_forms_of_an_accent_are_two_names,
    upper_and_lower_case_are_two_names,
    percent_signs_are_not_decoded,
    a_name_of_the_greatest_length_works,
    a_segment_of_the_greatest_length_works,
    a_name_may_be_deep,
    a_name_may_start_with_a_dot_or_underscore,
    hostile_names_are_refused_by_every_call,
    a_prefix_that_is_no_folder_is_refused,
    a_range_from_the_middle,
    a_range_of_the_whole,
    a_range_past_the_end_is_shorter,
    a_range_beyond_the_end_is_empty,
    a_range_of_nothing_is_empty,
    a_create_of_an_absent_name_lands,
    a_create_of_a_taken_name_is_lost_and_changes_nothing,
    one_raw_create_of_a_taken_name_never_says_landed,
    a_create_after_a_delete_lands,
    of_many_creators_of_one_name_exactly_one_wins,
    a_create_leaves_its_neighbours_alone,
    a_match_of_the_current_version_lands,
    a_match_of_a_stale_version_is_lost_and_changes_nothing,
    a_match_of_a_version_that_was_read_lands,
    a_match_on_an_absent_object_is_lost_and_creates_nothing,
    a_match_after_a_delete_is_lost,
    a_match_after_a_new_creation_is_lost,
    the_version_of_another_object_does_not_match,
    of_two_swaps_from_one_version_one_lands,
    a_chain_of_swaps_holds,
    a_swap_may_grow_and_shrink,
    a_counter_with_many_workers_counts_every_increment,
    a_state_that_returns_does_not_match_its_past,
    a_document_reads_back_as_it_was_written,
    a_second_first_state_is_lost,
    an_unknown_format_version_is_refused,
    another_kind_of_document_is_refused,
    bytes_that_are_no_document_are_refused,
    a_lease_has_one_holder_and_growing_epochs,
    a_deleted_object_is_gone,
    deleting_what_is_not_there_is_fine,
    a_delete_leaves_its_neighbours_alone,
    an_empty_folder_lists_nothing,
    a_folder_is_listed_in_the_order_of_bytes,
    a_tree_is_listed_whole_whatever_the_pages,
    a_listing_stays_in_its_folder,
    a_listing_tells_sizes_and_times,
    a_listing_goes_on_after_a_name,
    a_listing_goes_on_after_a_name_that_is_gone,
    a_page_says_whether_more_follows,
    five_thousand_names_are_listed_in_pages,
    a_listing_never_shows_what_is_being_written,
)

SIGNING_CASES: tuple[Case, ...] = (
    a_signed_link_reads,
    a_signed_link_writes,
    a_signed_link_reads_its_own_object_and_does_nothing_else,
    a_signed_link_ends,
    a_link_for_too_long_or_too_short_is_refused,
)

NO_SIGNING_CASES: tuple[Case, ...] = (a_store_that_cannot_sign_says_so,)

NETWORK_CASES: tuple[Case, ...] = (
    *(_create_survives(fault) for fault in _SPOILED),
    *(_swap_survives(fault) for fault in _SPOILED),
    a_raw_write_whose_reply_is_cut_is_unknown,
    a_raw_write_is_sent_once,
    a_contended_create_with_nothing_there_is_not_lost,
    a_swap_that_others_overtook_still_knows_that_it_landed,
    a_lost_swap_is_lost_though_its_reply_was_spoiled,
    a_slow_reply_is_waited_for,
    a_read_is_repeated_until_it_is_answered,
    a_listing_is_repeated_until_it_is_answered,
    counters_survive_a_rain_of_faults,
)
