"""Compatibility: every cell of changes × modes, how changes are found, and what each refusal says."""

from itertools import product

import pytest

from arco.quality.compatibility import RULES, ChangeKind, Compatibility, changes, refusal_of, verdict, widens
from arco.quality.schemas import Column, Schema

K = ChangeKind
BASE = (
    Column(1, ("id",), "long", required=True),
    Column(2, ("amount",), "int"),
    Column(3, ("note",), "string", doc="free text"),
)


def with_column(place, column):
    return Schema((*BASE[:place], column, *BASE[place + 1 :]))


# One example of each change, and which of backward and forward allow it.
EXAMPLES = {
    K.ADD_OPTIONAL: (Schema((*BASE, Column(4, ("x",), "int"))), True, True),
    K.ADD_REQUIRED: (Schema((*BASE, Column(4, ("x",), "int", required=True))), False, True),
    K.ADD_WITH_DEFAULT: (Schema((*BASE, Column(4, ("x",), "int", required=True, default=0))), True, True),
    K.DROP: (Schema(BASE[:2]), True, False),
    K.RENAME: (with_column(2, Column(3, ("remark",), "string", doc="free text")), True, True),
    K.WIDEN: (with_column(1, Column(2, ("amount",), "long")), True, False),
    K.RETYPE: (with_column(1, Column(2, ("amount",), "string")), False, False),
    K.RELAX: (with_column(0, Column(1, ("id",), "long")), True, False),
    K.TIGHTEN: (with_column(1, Column(2, ("amount",), "int", required=True)), False, True),
    K.REDEFAULT: (with_column(1, Column(2, ("amount",), "int", default=7)), False, False),
    K.REORDER: (Schema((BASE[0], BASE[2], BASE[1])), True, True),
    K.REDOCUMENT: (with_column(2, Column(3, ("note",), "string", doc="other")), True, True),
}


def test_there_is_a_rule_and_an_example_for_every_change():
    assert list(RULES) == list(ChangeKind) == list(EXAMPLES)


@pytest.mark.parametrize("kind", ChangeKind, ids=lambda kind: kind.name.lower())
def test_every_example_is_found_as_that_change_alone(kind):
    assert [change.kind for change in changes(Schema(BASE), EXAMPLES[kind][0])] == [kind]


@pytest.mark.parametrize(("kind", "mode"), [*product(ChangeKind, Compatibility)], ids=lambda each: each.name.lower())
def test_every_cell_of_the_table(kind, mode):
    after, backward, forward = EXAMPLES[kind]
    expected = {"none": True, "backward": backward, "forward": forward, "full": backward and forward}[mode.value]
    found = verdict(Schema(BASE), after, mode)
    assert found.allowed is expected
    assert (refusal_of(kind, mode) is None) is expected
    for refusal in found.refusals:
        assert refusal.change.kind is kind
        assert refusal.reason
        assert refusal.way_out


def test_hazard_21_full_does_not_accept_a_removed_column():
    found = verdict(Schema(BASE), Schema(BASE[:2]), Compatibility.FULL)
    assert not found.allowed
    (refusal,) = found.refusals
    assert str(refusal) == (
        "drop a column: note: readers of the old schema still ask for it; "
        "keep the column, or change the asset's compatibility to backward when no reader needs it"
    )


def test_a_refusal_by_full_gives_both_reasons():
    (refusal,) = verdict(Schema(BASE), EXAMPLES[K.RETYPE][0], Compatibility.FULL).refusals
    assert refusal.reason == f"{RULES[K.RETYPE].backward}; {RULES[K.RETYPE].forward}"


def test_what_the_table_format_cannot_record_is_not_in_place():
    in_place = {kind for kind in ChangeKind if verdict(Schema(BASE), EXAMPLES[kind][0], Compatibility.NONE).in_place}
    assert set(ChangeKind) - in_place == {K.ADD_REQUIRED, K.RETYPE, K.TIGHTEN, K.REDEFAULT}


WIDENINGS = [
    ("int", "long", 1),
    ("float", "double", 1),
    ("decimal(9,2)", "decimal(18,2)", 1),
    ("date", "timestamp", 3),
    ("date", "timestamp_ns", 3),
]
TYPES = [
    *(
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
    ),
    *(
        "string",
        "uuid",
        "binary",
        "fixed[4]",
        "fixed[8]",
        "decimal(9,2)",
        "decimal(18,2)",
        "decimal(18,4)",
        "unknown",
        "variant",
    ),
    *("struct", "list", "map"),
]


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_the_only_widenings_are_those_of_the_table_format(format_version):
    found = {(one, other) for one, other in product(TYPES, TYPES) if widens(one, other, format_version=format_version)}
    assert found == {(one, other) for one, other, version in WIDENINGS if version <= format_version}


def test_the_format_version_decides_about_dates():
    before, after = Schema.of({"day": "date"}), Schema.of({"day": "timestamp"})
    assert [verdict(before, after, Compatibility.BACKWARD, format_version=n).allowed for n in (2, 3)] == [False, True]


def test_two_columns_of_one_name_are_told_apart_by_their_ids():
    found = changes(Schema(BASE), Schema((*BASE[:2], Column(4, ("note",), "string", doc="free text"))))
    assert [(change.kind, change.column) for change in found] == [(K.DROP, "note"), (K.ADD_OPTIONAL, "note")]


def test_names_that_change_places_are_two_renames():
    swapped = Schema((Column(1, ("amount",), "long", required=True), Column(2, ("id",), "int"), BASE[2]))
    assert [str(change) for change in changes(Schema(BASE), swapped)] == [
        "rename a column: amount (id → amount)",
        "rename a column: id (amount → id)",
    ]


def test_one_column_can_change_in_several_ways():
    after = with_column(1, Column(2, ("total",), "long", required=True, default=1, doc="sum"))
    kinds = [K.RENAME, K.WIDEN, K.TIGHTEN, K.REDEFAULT, K.REDOCUMENT]
    assert [change.kind for change in changes(Schema(BASE), after)] == kinds


@pytest.mark.parametrize(("before", "after"), [(0, False), (1, True), (1, "1")])
def test_defaults_are_compared_as_json(before, after):
    one, other = (Schema((Column(1, ("a",), "int", default=default),)) for default in (before, after))
    assert [change.kind for change in changes(one, other)] == [K.REDEFAULT]


# --- nested columns


def address(*fields, kind="struct", key=2):
    return {"id": key, "name": "address", "type": {"type": kind, "fields": list(fields)}, "required": False}


def leaf(key, name, text="string", **more):
    return {"id": key, "name": name, "type": text, "required": False, **more}


def a_list(element, *, required=False):
    return {
        "id": 5,
        "name": "tags",
        "type": {"type": "list", "element-id": 6, "element": element, "element-required": required},
    }


def a_map(key, value):
    inner = {"type": "map", "key-id": 8, "key": key, "value-id": 9, "value": value, "value-required": False}
    return {"id": 7, "name": "by", "type": inner, "required": False}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def nested(*fields):
    return Schema.of({"type": "struct", "fields": [leaf(1, "id"), *fields]})


NESTED = {
    "a field is added": (
        address(leaf(3, "city")),
        address(leaf(3, "city"), leaf(4, "zip")),
        [(K.ADD_OPTIONAL, "address.zip")],
    ),
    "a field is dropped": (address(leaf(3, "city"), leaf(4, "zip")), address(leaf(3, "city")), [(K.DROP, "address.zip")]),
    "a field is renamed": (address(leaf(3, "city")), address(leaf(3, "town")), [(K.RENAME, "address.town")]),
    "fields change places": (
        address(leaf(3, "city"), leaf(4, "zip")),
        address(leaf(4, "zip"), leaf(3, "city")),
        [(K.REORDER, "address")],
    ),
    "the parent is renamed, and its children are not": (
        address(leaf(3, "city")),
        {**address(leaf(3, "city")), "name": "home"},
        [(K.RENAME, "home")],
    ),
    "a struct becomes text": (address(leaf(3, "city")), leaf(2, "address"), [(K.RETYPE, "address")]),
    "text becomes a struct": (leaf(2, "address"), address(leaf(3, "city")), [(K.RETYPE, "address")]),
    "a struct is added whole": (
        leaf(9, "x"),
        address(leaf(3, "city", required=True)),
        [(K.DROP, "x"), (K.ADD_OPTIONAL, "address")],
    ),
    "a struct is dropped whole": (
        address(leaf(3, "city"), {"id": 4, "name": "geo", "type": struct(leaf(5, "lat"))}),
        leaf(9, "x"),
        [(K.DROP, "address"), (K.ADD_OPTIONAL, "x")],
    ),
    "an element widens": (a_list("int"), a_list("long"), [(K.WIDEN, "tags.element")]),
    "an element becomes required": (a_list("int"), a_list("int", required=True), [(K.TIGHTEN, "tags.element")]),
    "a field of an element is added": (
        a_list(struct(leaf(10, "a"))),
        a_list(struct(leaf(10, "a"), leaf(11, "b"))),
        [(K.ADD_OPTIONAL, "tags.element.b")],
    ),
    "a field of a map's value is dropped": (
        a_map("string", struct(leaf(10, "a"), leaf(11, "b"))),
        a_map("string", struct(leaf(10, "a"))),
        [(K.DROP, "by.value.b")],
    ),
    "a field of a map's key is dropped": (
        a_map(struct(leaf(10, "a"), leaf(11, "b")), "int"),
        a_map(struct(leaf(10, "a")), "int"),
        [(K.RETYPE, "by.key.b")],
    ),
    "a field of a map's key is added": (
        a_map(struct(leaf(10, "a")), "int"),
        a_map(struct(leaf(10, "a"), leaf(11, "b")), "int"),
        [(K.RETYPE, "by.key.b")],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), NESTED.values(), ids=NESTED)
def test_nested_columns(before, after, expected):
    assert [(change.kind, change.column) for change in changes(nested(before), nested(after))] == expected


def test_a_column_that_moves_to_another_parent_is_refused():
    inside = nested(address(leaf(3, "city")), leaf(4, "x"))
    outside = nested(address(), leaf(4, "x"), leaf(3, "city"))
    (change,) = changes(inside, outside)
    assert (change.kind, change.before, change.after) == (K.RETYPE, "address.city", "city")


def test_a_schema_is_compatible_with_itself_in_every_mode():
    same = nested(address(leaf(3, "city")), a_list("int"), a_map("string", "int"))
    assert all(verdict(same, same, mode).allowed and not verdict(same, same, mode).changes for mode in Compatibility)
