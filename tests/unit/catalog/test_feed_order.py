"""In which order changes are told: what waits, what does not, and what comes before what."""

from collections.abc import Iterable
from dataclasses import replace

from arco.catalog.feed_order import Found, Together, arranged, completed, gaps_after, is_past, unmade
from arco.catalog.manifest import Commit
from arco.catalog.model import Entry, Format, Kind, Reservation
from arco.catalog.operations import Confirm, Create, Drop
from arco.catalog.transaction_records import Part
from arco.ledger.receipts import Published, Receipt, Source
from arco.storage.keys import Phase

A, B, C = "aaaa", "bbbb", "cccc"


def receipt(uuid: str, number: int, at_ms: int = 0, transaction: str | None = None) -> Receipt:
    location = f"{uuid}/{number}"
    published = Published("e", number, location, None, None, at_ms, Source(), transaction)
    return Receipt("arco.receipt", 1, Phase.COMMITTED, uuid, location, published)


def named(*receipts: Receipt) -> dict[str, Receipt]:
    return {one.commit_key: one for one in receipts}


def creation(sequence: int, uuid: str, at_ms: int = 0) -> Commit:
    entry = Entry(uuid, "asset", Kind.TABLE, Format.ICEBERG, ("ns",), uuid, "loc", 1, 0, 0)
    return Commit(
        f"c{sequence}", sequence, None, None, at_ms, "me", None, (Create(key_hash="k", entry=entry, minted_ms=0),)
    )


def confirmation(sequence: int, uuid: str, at_ms: int = 0) -> Commit:
    """The name of a table that a transaction made."""
    entry = Entry(uuid, "asset", Kind.TABLE, Format.ICEBERG, ("ns",), uuid, "loc", 1, 0, 0)
    confirmed = Confirm(key_hash="k", reservation=Reservation(entry, "t", 1, f"{uuid}/0"))
    return Commit(f"c{sequence}", sequence, None, None, at_ms, "me", None, (confirmed,))


def drop(sequence: int, uuid: str, at_ms: int = 0) -> Commit:
    gone = Drop(key_hash="k", uuid=uuid, binding=1, drop_id="d", purge=False, principal="me")
    return Commit(f"c{sequence}", sequence, None, None, at_ms, "me", None, (gone,))


def told(found: Found, last: dict[str, int] | None = None) -> list[str]:
    """What is told, in a word each: names by their commit, commits by table and number."""
    return [_word(item) for item in arranged(found, last or {})]


def _word(item: Commit | Together) -> str:
    if isinstance(item, Commit):
        return item.id
    return "+".join(f"{one.table_uuid[0]}{one.commit.commit_number}" for one in item.receipts)


def parts(*some: Receipt) -> frozenset[Part]:
    return frozenset(Part(one.table_uuid, one.commit.metadata_location, 1) for one in some)


def test_commits_of_a_table_come_by_number_whatever_their_times() -> None:
    found = named(receipt(A, 2, at_ms=1), receipt(A, 3, at_ms=0), receipt(A, 1, at_ms=9))
    assert told(Found((), found), {A: 0}) == ["a1", "a2", "a3"]


def test_a_commit_waits_for_the_one_before_it_and_holds_up_what_follows_it() -> None:
    found = named(receipt(A, 2), receipt(A, 3), receipt(B, 1))
    assert told(Found((), found), {A: 0, B: 0}) == ["b1"]
    assert told(Found((), found, frozenset(found)), {A: 0, B: 0}) == ["a2", "a3", "b1"]


def test_the_first_commit_of_a_table_waits_for_none() -> None:
    assert told(Found((), named(receipt(A, 0)))) == ["a0"]


def test_what_was_told_before_need_not_be_found_again() -> None:
    assert told(Found((), named(receipt(A, 8))), {A: 7}) == ["a8"]


def test_a_transaction_waits_for_all_of_its_parts_and_comes_at_one_place() -> None:
    one, two = receipt(A, 1, transaction="t"), receipt(B, 1, transaction="t")
    last = {A: 0, B: 0, C: 0}
    assert told(Found((), named(one), parts={"t": parts(one, two)}), last) == []
    both = Found((), named(two, one, receipt(C, 1)), parts={"t": parts(one, two)})
    assert sorted(told(both, last)) == ["a1+b1", "c1"]


def test_what_follows_a_transaction_that_waits_waits_too() -> None:
    one, two = receipt(A, 1, transaction="t"), receipt(B, 1, transaction="t")
    found = Found((), named(one, receipt(A, 2), receipt(B, 2)), parts={"t": parts(one, two)})
    assert told(found, {A: 0, B: 0}) == []


def test_a_transaction_whose_record_was_not_read_waits_and_one_whose_record_is_gone_does_not() -> None:
    one = receipt(A, 1, transaction="t")
    assert told(Found((), named(one)), {A: 0}) == []
    assert told(Found((), named(one), parts={"t": None}), {A: 0}) == ["a1"]


def test_two_transactions_come_in_the_order_of_the_tables_that_they_share() -> None:
    first = (receipt(A, 1, 9, "t"), receipt(B, 1, 9, "t"))
    second = (receipt(B, 2, 1, "u"), receipt(C, 1, 1, "u"))
    found = Found((), named(*second, *first), parts={"t": parts(*first), "u": parts(*second)})
    assert told(found, {A: 0, B: 0, C: 0}) == ["a1+b1", "b2+c1"]


def test_names_come_in_their_order_and_what_made_a_table_before_its_commits() -> None:
    names = (creation(1, A, at_ms=5), creation(2, B, at_ms=5))
    found = named(receipt(A, 1, at_ms=0), receipt(B, 1, at_ms=9), receipt(A, 0), receipt(B, 0))
    order = told(Found(names, found), {})
    assert order.index("c1") < order.index("c2")
    assert order.index("c1") < order.index("a1")
    assert order.index("c2") < order.index("b1")


def test_between_names_and_commits_time_decides() -> None:
    found = named(receipt(A, 1, at_ms=3), receipt(B, 1, at_ms=7))
    assert told(Found((drop(1, C, at_ms=5),), found), {A: 0, B: 0}) == ["a1", "c1", "b1"]


def test_everything_that_is_ready_is_told_once() -> None:
    def numbers(uuids: Iterable[str]) -> list[Receipt]:
        return [receipt(uuid, number, at_ms=number * 7 % 5) for uuid in uuids for number in range(6)]

    found = Found((creation(1, A), creation(2, B)), named(*numbers((A, B))))
    assert sorted(told(found)) == sorted(["c1", "c2", *(f"{one}{number}" for one in "ab" for number in range(6))])


def test_what_is_behind_the_last_commit_told_of_its_table_is_no_news_but_for_a_gap() -> None:
    last, gaps = {A: 7}, {A: (3, 5)}
    assert [number for number in range(10) if not is_past(receipt(A, number), last, gaps)] == [3, 5, 8, 9]
    assert not is_past(receipt(B, 0), last, gaps)


def test_gaps_are_what_was_passed_after_the_first_commit_that_was_told() -> None:
    assert gaps_after([receipt(A, 4), receipt(A, 5), receipt(B, 0)], {}, {}) == {}
    assert gaps_after([receipt(A, 4), receipt(A, 7)], {}, {}) == {A: (5, 6)}
    assert gaps_after([receipt(A, 8), receipt(B, 3)], {A: 7, B: 0}, {}) == {B: (1, 2)}


def test_gaps_close_when_their_commits_are_told() -> None:
    assert gaps_after([receipt(A, 5)], {A: 7}, {A: (5, 6)}) == {A: (6,)}
    assert gaps_after([receipt(A, 6), receipt(A, 8)], {A: 7}, {A: (6,)}) == {A: ()}
    assert gaps_after([receipt(A, 8)], {A: 7}, {A: (6,)}) == {}


def test_commits_come_by_number_also_across_one_that_is_lost() -> None:
    late = named(receipt(A, 4, at_ms=1), receipt(A, 3, at_ms=2), receipt(A, 8, at_ms=0))
    assert told(Found((), late), {A: 7}) == ["a3", "a4", "a8"]
    found = named(receipt(A, 3, at_ms=1), receipt(A, 1, at_ms=2))
    assert told(Found((), found, frozenset(found)), {A: 0}) == ["a1", "a3"]


def test_a_part_that_is_certain_not_to_turn_up_holds_the_others_up_no_longer() -> None:
    one, two = receipt(A, 1, transaction="t"), receipt(B, 1, transaction="t")
    there = named(one, receipt(A, 2), receipt(C, 1))
    found = Found((), there, frozenset(there), {"t": parts(one, two)})
    assert told(found, {A: 0, B: 0, C: 0}) == ["a1", "a2", "c1"]
    only_one_was_waited_for = replace(found, confirmed=frozenset(named(receipt(A, 2), receipt(C, 1))))
    assert told(only_one_was_waited_for, {A: 0, B: 0, C: 0}) == ["c1"]


def test_what_waits_for_a_table_or_a_record_that_cannot_be_read_goes_on_waiting() -> None:
    one, two, three = receipt(A, 1, transaction="t"), receipt(B, 1, transaction="t"), receipt(C, 1)
    found = Found((), named(one, three), parts={"t": parts(one, two)})
    assert completed(found, set(), set()) == named(one, three)
    assert completed(found, {B}, set()) == named(three)
    assert completed(found, {C}, set()) == named(one)
    assert completed(found, set(), {"t"}) == named(three)


def test_what_became_of_the_name_of_a_table_comes_after_the_transaction_that_made_it() -> None:
    made = receipt(A, 0, at_ms=9, transaction="t")
    names = (confirmation(1, A, at_ms=2), drop(2, A, at_ms=3))
    found = Found(names, named(made, receipt(B, 1, at_ms=5)), parts={"t": parts(made)})
    assert told(found, {B: 0}) == ["b1", "a0", "c1", "c2"]


def test_a_transaction_that_waits_holds_up_no_names() -> None:
    made, lost = receipt(A, 0, transaction="t"), receipt(B, 1, transaction="t")
    names = (confirmation(1, A), drop(2, C))
    assert told(Found(names, named(made), parts={"t": parts(made, lost)})) == ["c1", "c2"]
    after_another = named(made, receipt(B, 3, transaction="t"))
    assert told(Found(names, after_another, parts={"t": parts(*after_another.values())}), {B: 0}) == ["c1", "c2"]


def test_a_table_is_unmade_while_its_name_is_there_and_its_first_commit_is_not() -> None:
    names = (confirmation(1, A), creation(2, B))
    assert unmade(Found(names, {}), {}) == {A}
    assert unmade(Found(names, {}), {A: 0}) == set()
    assert unmade(Found(names, named(receipt(A, 0, transaction="t"))), {}) == set()
