"""The fold of a history is one, whatever came first, twice or late; and no event stops it."""

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco.fold.arrow_joins import joined as joined_columns
from arco.fold.arrow_rows import arrow_schema, arrow_table, conformed, rows_of
from arco.fold.contributions import order, ranges_text
from arco.fold.joins import joined
from arco.fold.shredding import SHREDDERS, shred, shred_for
from arco.fold.tables import tables_of
from arco.fold.vocabulary import BUCKET
from arco.kernel.errors import InvalidInput, UnknownFormat
from arco.ledger.envelope import Event, EventType
from arco.ledger.payloads import SERVO
from arco.ledger.quality_events import PARTITION_QUARANTINED, PARTITION_RELEASED
from arco.storage.keys import Head
from fixtures.fold.histories import HEADS, History, states

WORDS = {PARTITION_QUARANTINED, PARTITION_RELEASED}
"""What people say: here everybody's word counts."""

promise = settings(max_examples=60)
heads = st.sampled_from(HEADS)
choices = st.randoms(use_true_random=False)


@promise
@given(heads, choices, st.integers(1, 40), st.integers(0, 50))
def test_folding_a_part_and_then_the_rest_is_folding_all(head: Head, pick: random.Random, count: int, cut: int) -> None:
    events = History(pick).events(head, count)
    whole = states(head, events)
    assert states(head, events[cut:], states(head, events[:cut])) == whole
    # Files of one part and files of the other, joined as a merge joins them.
    first, second = states(head, events[:cut]), states(head, events[cut:])
    for table in tables_of(head):
        rows = [*second[table.name].values(), *first[table.name].values()]
        assert joined(table, rows) == whole[table.name]


@promise
@given(heads, choices, st.integers(1, 40))
def test_order_and_repetition_change_nothing(head: Head, pick: random.Random, count: int) -> None:
    events = History(pick).events(head, count)
    whole = states(head, events)
    again = [*events, *(pick.choice(events) for _ in range(count))]
    pick.shuffle(again)
    assert states(head, again) == whole


@promise
@given(heads, choices, st.integers(1, 40))
def test_a_second_delivery_changes_nothing(head: Head, pick: random.Random, count: int) -> None:
    """The oracle knows no order: it has every event once, the delivery with the first position, before anything is compared."""
    history = History(pick)
    events = history.once(head, count)
    delivered = [*events, *(history.again(pick.choice(events)) for _ in range(count))]
    pick.shuffle(delivered)
    first: dict[tuple[str, str], Event] = {}
    for event in sorted(delivered, key=lambda one: one.position):
        # Events of one id that say different things (a commit, announced with and without its metadata) are two.
        first.setdefault((event.id, repr(event.data)), event)
    assert states(head, delivered) == states(head, list(first.values()))


@promise
@given(choices, st.integers(1, 40))
def test_of_two_words_the_one_said_later_stands(pick: random.Random, count: int) -> None:
    """An oracle without orders: among distinct events the latest time, then the greatest id."""
    history = History(pick)
    events = history.once(Head.QUALITY, count)
    delivered = [*events, *(history.again(pick.choice(events)) for _ in range(count))]
    words: dict[tuple[str, str, str], tuple[str, str, bool]] = {}
    for event in events:
        if event.type in WORDS:
            version = event.data["materialization_id"] or ""
            of = (event.data["asset_id"], ranges_text(event.data["partitions"]), version)
            word = (event.time, event.id, event.type == PARTITION_QUARANTINED)
            words[of] = max(words.get(of, word), word)
    found = states(Head.QUALITY, delivered)["quarantines"]
    assert {of: row["quarantined"] for of, row in found.items()} == {of: word[2] for of, word in words.items()}


@promise
@given(st.sampled_from((Head.EXECUTION, Head.QUALITY)), choices, st.integers(1, 40))
def test_whoever_else_speaks_what_servo_says_stands(head: Head, pick: random.Random, count: int) -> None:
    """An oracle without orders: a group is what Servo's events alone make of it; what Servo says nothing of, others decide."""
    events = [one for one in History(pick).events(head, count) if one.type not in WORDS]
    whole = states(head, events)
    own = states(head, [one for one in events if one.source == SERVO])
    others = states(head, [one for one in events if one.source != SERVO])
    for table in tables_of(head):
        assert whole[table.name].keys() == own[table.name].keys() | others[table.name].keys()
        for key, row in whole[table.name].items():
            mine, theirs = own[table.name].get(key), others[table.name].get(key)
            for group in table.groups:
                decides = theirs if mine is None or (mine[group.order] is None and theirs is not None) else mine
                assert decides is not None
                names = [one.name for one in group.columns]
                assert [row[name] for name in names] == [decides[name] for name in names]


@promise
@given(heads, choices, st.integers(1, 40))
def test_no_two_contributions_to_a_group_have_one_order(head: Head, pick: random.Random, count: int) -> None:
    for table in tables_of(head):
        seen = set()
        for event in History(pick).events(head, count):
            for theirs, row in shred_for(head, event):
                for group in theirs.groups if theirs is table else ():
                    if row[group.order] is not None:
                        found = (group.name, row[group.order], *(row[name] for name in table.key_names))
                        assert found not in seen
                        seen.add(found)


@promise
@given(heads, choices, st.integers(1, 20))
def test_rows_are_the_same_after_they_were_arrow(head: Head, pick: random.Random, count: int) -> None:
    whole = states(head, History(pick).events(head, count))
    for table in tables_of(head):
        rows = list(whole[table.name].values())
        assert list(rows_of(table, arrow_table(table, rows))) == rows


@promise
@given(heads, choices, st.integers(1, 40), st.integers(1, 4))
def test_columns_are_joined_as_rows_are(head: Head, pick: random.Random, count: int, files: int) -> None:
    events = History(pick).events(head, count)
    whole = states(head, events)
    contributed = [one for event in events for one in shred_for(head, event)]
    pick.shuffle(contributed)
    for table in tables_of(head):
        rows = [row for theirs, row in contributed if theirs is table]
        # At once; and as files that are joined again, as a merge does.
        parts = [joined_columns(table, arrow_table(table, rows[at::files])) for at in range(files)]
        for given_rows in (arrow_table(table, rows), pa.concat_tables(conformed(table, part) for part in parts)):
            found = list(rows_of(table, joined_columns(table, given_rows)))
            assert {tuple(row[name] for name in table.key_names): row for row in found} == whole[table.name]
            keys = [tuple(row[name] for name in (BUCKET, *table.key_names)) for row in found]
            assert keys == sorted(set(keys))


@promise
@given(heads, choices)
def test_a_file_of_another_version_has_the_columns_of_this_one(head: Head, pick: random.Random) -> None:
    whole = states(head, History(pick).events(head, 10))
    for table in tables_of(head):
        rows = arrow_table(table, list(whole[table.name].values()))
        name = pick.choice([column.name for group in table.groups for column in group.columns])
        old = rows.drop_columns([name]).append_column("dropped_since", pa.nulls(rows.num_rows))
        found = conformed(table, old)
        assert found.schema == arrow_schema(table)
        assert found.column(name).null_count == rows.num_rows
        assert found.drop_columns([name]) == rows.drop_columns([name])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("date", "d", "rows", "x")), inner, max_size=3)
    ),
    max_leaves=6,
)


@promise
@given(heads, choices, st.data())
def test_an_event_contributes_or_is_refused_whatever_it_holds(head: Head, pick: random.Random, data: st.DataObject) -> None:
    event = History(pick).events(head, 1)[0]
    changed = dict(event.data)
    for name in data.draw(st.lists(st.sampled_from(sorted(changed)), min_size=1, max_size=3)):
        changed[name] = data.draw(json_values)
    attributes = {name: getattr(event, name) for name in event.__struct_fields__}
    try:
        contributed = shred_for(head, type(event)(**{**attributes, "data": changed}))
    except InvalidInput:
        return
    for table in tables_of(head):
        arrow_table(table, [row for theirs, row in contributed if theirs is table])


@promise
@given(choices, heads)
def test_an_event_of_a_later_version_is_set_aside(pick: random.Random, head: Head) -> None:
    event = History(pick).events(head, 1)[0]
    attributes = {name: getattr(event, name) for name in event.__struct_fields__}
    later = type(event)(**{**attributes, "type": EventType(f"{event.type.rpartition('.')[0]}.v999")})
    try:
        shred(later)
    except UnknownFormat:
        return
    raise AssertionError("it was taken for something that is known")


numbers = st.integers(0, 2**63 - 1)


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_orders_compare_as_their_numbers_do(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (order(*one) < order(*other)) == (one < other)


@pytest.mark.parametrize("head", HEADS)
def test_histories_have_every_event_that_a_head_folds(head: Head) -> None:
    """What no history has, no test above has seen."""
    told = {event.type for event in History(random.Random(1)).events(head, 500)}
    assert told == set(SHREDDERS[head])
