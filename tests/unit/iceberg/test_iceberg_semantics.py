"""Primitive types, transforms and default values, case by case."""

import pytest

from arco.iceberg.semantics import can_transform, check_default, known_transform, leaf

TYPES = [
    ("long", 1),
    ("decimal(38,10)", 1),
    ("decimal(9, 2)", 1),
    ("fixed[16]", 1),
    ("timestamptz_ns", 3),
    ("variant", 3),
    ("geometry", 3),
    ("geography(srid:4326, spherical)", 3),
    ("decimal(39,2)", None),
    ("decimal(0,0)", None),
    ("decimal(9,2)x", None),
    ("fixed[0]", None),
    ("Long", None),
    ("bigint", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "since"), TYPES)
def test_a_type_is_known_by_its_exact_spelling(text, since):
    known = leaf(text)
    assert (known.min_format_version if known else None) == since


DEFAULTS = [
    ("boolean", True, True),
    ("boolean", 1, False),
    ("int", 2**31 - 1, True),
    ("int", 2**31, False),
    ("long", -(2**63), True),
    ("long", True, False),
    ("double", 1.5, True),
    ("float", 1, True),
    ("float", "1", False),
    ("decimal(9,2)", "14.20", True),
    ("decimal(9,2)", 14.2, False),
    ("decimal(9,2)", "x", False),
    ("string", "", True),
    ("string", 1, False),
    ("date", "2025-01-31", True),
    ("date", "2025-02-31", False),
    ("date", 3, False),
    ("time", "10:30:00.123456", True),
    ("time", "25:00:00", False),
    ("timestamp", "2025-01-01T00:00:00.000001", True),
    ("timestamp", "2025-01-01T00:00:00+00:00", False),
    ("timestamptz", "2025-01-01T00:00:00+00:00", True),
    ("timestamptz", "2025-01-01T00:00:00", False),
    ("timestamp_ns", "2025-01-01T00:00:00.000000001", True),
    ("timestamptz_ns", "2025-01-01T00:00:00.000000001", False),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", True),
    ("uuid", "f79c", False),
    ("binary", "00ff", True),
    ("binary", "0", False),
    ("fixed[2]", "00ff", True),
    ("fixed[2]", "00", False),
    ("variant", {}, False),
    ("unknown", "x", False),
]


@pytest.mark.parametrize(("kind", "value", "fits"), DEFAULTS)
def test_a_default_value_is_written_as_every_reader_expects(kind, value, fits):
    assert check_default(kind, value) is fits


TRANSFORMED = [
    ("identity", "long", True),
    ("bucket[4]", "timestamp_ns", True),
    ("bucket[4]", "double", False),
    ("truncate[3]", "string", True),
    ("truncate[3]", "date", False),
    ("day", "timestamptz_ns", True),
    ("hour", "date", False),
    ("void", "variant", True),
    ("identity", "variant", False),
    ("identity", "geometry(srid:1)", False),
    ("identity", "type-of-tomorrow", False),
    ("zorder[2]", "long", False),
]


@pytest.mark.parametrize(("transform", "kind", "possible"), TRANSFORMED)
def test_a_transform_takes_the_types_it_is_defined_for(transform, kind, possible):
    assert can_transform(transform, kind) is possible


@pytest.mark.parametrize(
    "text", ["bucket", "bucket[]", "bucket[0]", "bucket[-1]", "bucket[4]x", "Identity", "days", "truncate[x]"]
)
def test_a_misspelled_transform_is_unknown(text):
    assert not known_transform(text)
