"""Partition values in paths come back as they were."""

from decimal import Decimal

import pytest

from arco.kernel.errors import BrokenInvariant
from arco.servo.execute.partition_text import parse_folders, parse_value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "v", ""),
        ("string", "n", None),
        ("string", "vc3bc2f3d25", "ü/=%"),
        ("binary", "v00ff", b"\x00\xff"),
        ("long", "-5", -5),
        ("date", "20089", 20089),
        ("timestamptz", "-1", -1),
        ("boolean", "0", False),
        ("boolean", "1", True),
        ("decimal(9, 2)", "v-0.10", Decimal("-0.10")),
        ("void", "__HIVE_DEFAULT_PARTITION__", None),
        ("int", "__HIVE_DEFAULT_PARTITION__", None),
        ("decimal(9, 2)", "n", None),
    ],
)
def test_a_text_is_the_value_it_was_made_from(kind, text, value):
    assert parse_value(kind, text) == value


def test_the_empty_text_is_not_null():
    assert parse_value("string", "v") != parse_value("string", "n")


def test_the_partition_of_a_file_is_read_from_its_folders_by_their_names():
    path = "file:///lake/x=1/data/m/0/__p1=v61/__p0=7/part-0.parquet"
    assert parse_folders(path, ["int", "string"]) == (7, "a")
    assert parse_folders("file:///lake/part-0.parquet", []) == ()


@pytest.mark.parametrize("path", ["/m/0/part-0.parquet", "/m/0/__p0=v7/part-0.parquet"])
def test_a_file_in_another_folder_is_never_guessed_about(path):
    with pytest.raises(BrokenInvariant):
        parse_folders(path, ["int"])
