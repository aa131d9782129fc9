"""What an asset's fingerprint follows: a change of it anywhere in the project, and nothing that only looks different."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.servo.sdk.fingerprints import of_text
from arco.servo.sdk.project import load_project

HELPERS = """
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial, wraps

from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

RATE = 1
FIRST = date(2025, 1, 1)
SHARE = Decimal("0.10")
KINDS = {"new", "paid", "sent"}
SCHEMA = StructType([StructField("id", LongType())])


def clean(rows):
    "Cleaned."
    return rows.where("x > 1")


def cut(rows, by=RATE + 10):
    return rows.limit(by)


@F.udf(LongType())
def twice(x):
    return x * 2


half = F.udf(lambda x: x // 2, LongType())
same = F.udf(lambda x: x, LongType())


def tripled(x):
    return x * 3


triple = F.udf(tripled, LongType())


def counted(function):
    @wraps(function)
    def inside(*given):
        return function(*given).limit(100)

    return inside


@counted
def limited(rows):
    return rows


class Base:
    def bound(self):
        return deep() + 1000


class Rules(Base):
    least = 5

    def __init__(self, factor):
        self.factor = factor

    @staticmethod
    def keep(rows):
        return rows.where("kept")

    @property
    def limit(self):
        return deep()

    def apply(self, rows):
        return inner(rows)


def inner(rows):
    return rows.where("a > 1")


def deep():
    return 40


class Kind(Enum):
    NEW = "new"


@dataclass(frozen=True)
class Window:
    days: int = 7


RULES = Rules(2)
WINDOW = Window(3)
STEPS = {"first": clean, "second": partial(cut, by=77)}
NOT_USED = 1
"""

ASSETS = """
import assets.helpers
import assets.helpers as short
from arco import asset, files
from assets import helpers
from assets.helpers import FIRST, KINDS, RULES, SCHEMA, SHARE, STEPS, WINDOW, Kind, Rules, cut, half, limited, triple, twice


def made(word):
    @asset(name=f"made_{word.strip()}")
    def inside(run):
        return run.spark.range(3).where(word)

    return inside


made_a, made_b = made("a"), made("b")


@asset
def by_module(run):
    return helpers.clean(run.spark.range(3))


@asset
def by_path(run):
    return assets.helpers.clean(run.spark.range(3)).limit(short.RATE)


@asset
def by_import_inside(run):
    from assets.helpers import clean

    return clean(run.spark.range(3))


@asset
def by_udf(run):
    return run.spark.range(3).select(twice("id"), half("id"), triple("id"))


@asset
def by_wrapper(run):
    return limited(run.spark.range(3))


@asset
def by_class(run):
    return Rules(1).apply(run.spark.range(Rules.least))


@asset
def by_object(run):
    return RULES.apply(run.spark.range(3))


@asset
def by_value(run):
    return run.spark.range(3).where(f"{FIRST} {SHARE} {sorted(KINDS)} {WINDOW.days} {Kind.NEW.value}")


@asset
def by_schema(run):
    return run.spark.createDataFrame([], SCHEMA)


@asset
def by_table_of_functions(run):
    return STEPS["first"](run.spark.range(3))


@asset
def by_default(run):
    return cut(run.spark.range(3))


@asset(inputs={"rows": files("landing/*.csv", header="true")})
def by_files(rows):
    return rows


@asset(tags="alone")
def alone(clean, rate=3):
    return clean.where("alone").tripled


@asset
def clean(run):
    return run.spark.range(3)
"""


def fingerprints(folder: Path, helpers: str = HELPERS, assets: str = ASSETS) -> dict[str, str]:
    (folder / "assets").mkdir(exist_ok=True)
    for stale in (folder / "assets").rglob("*.pyc"):
        stale.unlink()
    (folder / "assets" / "helpers.py").write_text(helpers)
    (folder / "assets" / "made.py").write_text(assets)
    found = load_project(folder, name="shop", namespace="shop")
    return {key.name: one.fingerprint for key, one in found.assets.items()}


BY_CLEAN = {"by_module", "by_path", "by_import_inside", "by_table_of_functions"}
BY_RULES = {"by_class", "by_object"}


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ('where("x > 1")', 'where("x > 2")', BY_CLEAN),
        ("RATE = 1\n", "RATE = 2\n", {"by_path", "by_default", "by_table_of_functions"}),
        ("return x * 2", "return x * 4", {"by_udf"}),
        ("@F.udf(LongType())", "@F.udf(IntegerType())", {"by_udf"}),
        ("x // 2", "x // 4", {"by_udf"}),
        ("lambda x: x // 2, LongType()", "lambda x: x // 2, StringType()", {"by_udf"}),
        ("return x * 3", "return x * 5", {"by_udf"}),
        ("F.udf(tripled, LongType())", "F.udf(tripled, IntegerType())", {"by_udf"}),
        ("limit(100)", "limit(200)", {"by_wrapper"}),
        ("@counted\n", "", {"by_wrapper"}),
        ('where("a > 1")', 'where("a > 2")', BY_RULES),
        ('where("kept")', 'where("sent")', BY_RULES),
        ("return 40", "return 41", BY_RULES),
        ("+ 1000", "+ 2000", BY_RULES),
        ("least = 5", "least = 6", BY_RULES),
        ("Rules(2)", "Rules(3)", {"by_object"}),
        ("date(2025, 1, 1)", "date(2025, 1, 2)", {"by_value"}),
        ('"0.10"', '"0.20"', {"by_value"}),
        ('"paid", ', "", {"by_value"}),
        ("Window(3)", "Window(4)", {"by_value"}),
        ('NEW = "new"', 'NEW = "newer"', {"by_value"}),
        ('StructField("id"', 'StructField("key"', {"by_schema"}),
        ("by=77", "by=78", {"by_table_of_functions"}),
        ("rows.limit(by)", "rows.limit(by + 1)", {"by_default", "by_table_of_functions"}),
        ("NOT_USED = 1", "NOT_USED = 2", set()),
        ('"Cleaned."', '"Cleaned, and said otherwise."', set()),
        ("def deep():\n", "\n\n# A comment.\ndef deep():\n", set()),
    ],
)
def test_a_change_anywhere_in_the_project_is_seen_by_whom_it_concerns(
    tmp_path: Path, before: str, after: str, differ: set[str]
) -> None:
    assert before in HELPERS
    one, other = fingerprints(tmp_path), fingerprints(tmp_path, HELPERS.replace(before, after))
    assert {name for name in one if one[name] != other[name]} == differ


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ('header="true"', 'header="false"', {"by_files"}),
        ('files("landing/*.csv"', 'files("landing/*.csv", format="json"', {"by_files"}),
        ("run.spark.range(3).where(word)", "run.spark.range(4).where(word)", {"made_a", "made_b"}),
        ('made("b")', 'made("b ")', {"made_b"}),
        ('tags="alone"', 'tags="other"', set()),
        ("def clean(run):\n    return run.spark.range(3)", "def clean(run):\n    return run.spark.range(4)", {"clean"}),
    ],
)
def test_a_change_of_an_asset_is_seen_by_it_alone(tmp_path: Path, before: str, after: str, differ: set[str]) -> None:
    assert before in ASSETS
    one, other = fingerprints(tmp_path), fingerprints(tmp_path, assets=ASSETS.replace(before, after))
    assert {name for name in one if one[name] != other[name]} == differ


def test_the_seed_of_hashes_does_not_matter(tmp_path: Path) -> None:
    fingerprints(tmp_path)
    code = (
        "import sys; from pathlib import Path; from arco.servo.sdk.project import load_project;"
        f"found = load_project(Path({str(tmp_path)!r}), name='s', namespace='s');"
        "print({str(key): one.fingerprint for key, one in found.assets.items()})"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(said)) == 1


def test_code_without_a_file_is_followed_too() -> None:
    code = (
        "from arco import asset\nfrom arco.servo.sdk.fingerprints import of_function\n"
        "class Rules:\n    __slots__ = ('n',)\n    def limit(self):\n        return LIMIT\n"
        "KEPT = [Rules, len, {'a': Rules()}]\n"
        "@asset\ndef made(run):\n    return run.spark.range(KEPT[0]().limit())\n"
        "print(of_function(made.function))"
    )

    def said(text: str) -> str:
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout

    assert said(code) == said(code)
    assert said(code) != said(code.replace("range(KEPT", "range(1 + KEPT"))
    assert said(code) != said(code.replace("return LIMIT", "return 1 + LIMIT"))


@pytest.mark.parametrize("default", ["object()", "len", "[object()]"])
def test_a_setting_that_cannot_be_written_down_is_refused(tmp_path: Path, default: str) -> None:
    code = f"from arco import asset\n@asset\ndef a(run, how={default}): ...\n"
    with pytest.raises(InvalidInput, match=r"made\.py:2: parameter how has a default that cannot be written down"):
        fingerprints(tmp_path, assets=code)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT a FROM b", "SELECT  a\n  FROM b -- said", True),
        ("SELECT a FROM b", "SELECT a /* said */ FROM b", True),
        ("SELECT 'a  b'", "SELECT 'a b'", False),
        ("SELECT '-- a'", "SELECT '-- b'", False),
        ("SELECT 'a\n-- b\nc'", "SELECT 'a\n-- d\nc'", False),
        ("SELECT /*+ BROADCAST(b) */ a", "SELECT a", False),
        ("SELECT `a -- b`", "SELECT `a -- c`", False),
    ],
)
def test_comments_and_layout_of_a_query_do_not_count(one: str, other: str, *, same: bool) -> None:
    assert (of_text(one) == of_text(other)) == same
