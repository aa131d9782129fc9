"""Primitive types, transforms and default values, case by case."""

import json
from pathlib import Path

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


DEFAULTS = json.loads((Path(__file__).parents[2] / "fixtures/iceberg/default_values.json").read_bytes())


@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: f"{case['type']} {case['value']!r}")
def test_a_default_value_is_written_as_every_reader_expects(case):
    """`test_default_values.py` asks Iceberg's Java library about the same file."""
    assert check_default(case["type"], case["value"]) is case["fits"]


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
