"""Projects: what functions and SQL files mean, and what is said, with file and line, when they mean nothing."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.quality.builtin import foreign_key, not_null
from arco.servo.sdk.authoring import asset, check, source
from arco.servo.sdk.definitions import AssetKind, InputKind, WriteMode
from arco.servo.sdk.project import Project, load_project
from arco.servo.sdk.sql_assets import tables_of


def project(folder: Path, **files: str) -> Project:
    (folder / "assets").mkdir(exist_ok=True)
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / "assets" / f"{stem}.{ending}").write_text(textwrap.dedent(text))
    return load_project(folder, name="shop", namespace="shop")


HEAD = """
from arco.quality.builtin import foreign_key, not_null, unique
from arco.servo.sdk.authoring import asset, check, source
from arco.servo.sdk.dimensions import daily, static
from arco.servo.sdk.inputs import changes_of, every, files, last, window

raw = source("raw", partitions=daily("date", start="2025-01-01"))
"""


def test_parameters_are_inputs_and_defaults_are_settings(tmp_path: Path) -> None:
    made = project(tmp_path, a_py=HEAD + "@asset\ndef clean(raw, run, limit=5):\n    'Clean rows.'\n    return raw\n")
    clean = made.assets[next(key for key in made.assets if key.name == "clean")]
    assert [(one.parameter, str(one.asset), one.kind) for one in clean.inputs] == [("raw", "shop.raw", InputKind.TABLE)]
    assert clean.wants_run
    assert clean.parameters == {"limit": 5}
    assert clean.description == "Clean rows."
    assert (clean.kind, clean.write.mode) == (AssetKind.PYTHON, WriteMode.REPLACE)


def test_the_decorated_function_stays_one() -> None:
    @asset(checks=[not_null("a")])
    def doubled(rows: list[int], times: int = 2) -> list[int]:
        return [one * times for one in rows]

    assert doubled([1, 2]) == [2, 4]
    assert doubled([1], times=3) == [3]
    assert doubled.__name__ == "doubled"
    assert pickle.loads(pickle.dumps(PICKLED)) is PICKLED


@asset
def PICKLED(rows: object) -> object:  # noqa: N802 - found by its name
    return rows


def test_a_source_has_no_code() -> None:
    with pytest.raises(InvalidInput, match="others write"):
        source("shop.raw")()


def test_a_source_has_no_checks() -> None:
    with pytest.raises(InvalidInput, match="its rows are there before anybody could check them"):
        check(source("shop.raw"), name="any")(lambda rows: True)


def test_sql_reads_what_it_names(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        a_py=HEAD,
        totals_sql="""
        /*
        partitions = [{ name = "date", kind = "daily", start = 2025-01-01 }]
        checks = [{ not_null = "n" }, { in_range = { column = "n", min = 0 }, severity = "warning" }, { row_count = { min = 1 } }]
        inputs = { raw = { window = [-6, 0] } }
        tags = ["finance"]
        */
        WITH x AS (SELECT date, count(*) AS n FROM raw GROUP BY date) SELECT * FROM x;
        """,
    )
    totals = made.assets[next(key for key in made.assets if key.name == "totals")]
    assert totals.kind is AssetKind.SQL
    assert [one.mapping.describe() for one in totals.inputs] == ["window -6..0"]
    assert [check.name for check in totals.checks] == ["not_null(n)", "in_range(n)", "row_count"]
    assert totals.tags == ("finance",)
    assert totals.sql is not None
    assert totals.sql.startswith("WITH x")


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT * FROM a JOIN b.c USING (k)", ["a", "b.c"]),
        ("WITH a AS (SELECT 1), z AS (SELECT * FROM a, y) SELECT * FROM z", ["y"]),
        ("SELECT (SELECT max(x) FROM q) FROM (SELECT * FROM w) t", ["q", "w"]),
        ("SELECT 1 UNION ALL SELECT n FROM u", ["u"]),
    ],
)
def test_the_tables_of_a_query(query: str, tables: list[str]) -> None:
    assert tables_of(query) == tables


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "@asset\ndef a(b): ...\n@asset\ndef b(a): ...\n",
            r"a\.py:\d+: these assets need each other: shop\.a -> shop\.b -> shop\.a",
        ),
        ("@asset\ndef a(nowhere): ...\n", r"a\.py:\d+: shop\.a reads 'nowhere', and there is no such asset"),
        ("@asset\ndef raw(): ...\n", r"a\.py:\d+: shop\.raw is defined twice"),
        (
            "@asset(inputs={'x': last('one')})\ndef two(x): ...\n@asset\ndef one(): ...\n",
            r"two reads shop\.one: last\(\) needs an input with partitions",
        ),
        ("@asset(mode='merge')\ndef a(raw): ...\n", r"a\.py:\d+: merge needs a key"),
        ("@asset(sort='x')\ndef a(raw): ...\n", r"a\.py:\d+: asset has no option 'sort'"),
        ("@asset\ndef a(*raw): ...\n", r"a\.py:\d+: parameter raw cannot be filled by name"),
        ("@asset(checks=[not_null('a'), not_null('a')])\ndef a(raw): ...\n", r"a\.py:\d+: shop\.a: .*not_null\(a\)"),
        ("@asset(checks=[foreign_key('a', to='nothing')])\ndef a(raw): ...\n", r"reads 'nothing'"),
        ("@asset\ndef Big(raw): ...\n", r"a\.py:\d+: "),
        ("1 / 0\n", r"a\.py:8: ZeroDivisionError"),
        ("@asset(fresh_within='soon')\ndef a(raw): ...\n", r"a\.py:\d+: 'soon' is not a duration"),
        ("@asset(timeout=1e306)\ndef a(raw): ...\n", r"a\.py:\d+: a duration of 1e\+306 seconds"),
        ("@asset(timeout=float('nan'))\ndef a(raw): ...\n", r"a\.py:\d+: a duration of nan seconds"),
        (
            "from arco import Retry\n@asset(retry=Retry(pause_s_max=1e306))\ndef a(raw): ...\n",
            r"retry pauses 2 s, and 1e\+306 s at most",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        project(tmp_path, a_py=HEAD + code)


def test_checks_that_compare_with_other_tables_wait_for_them(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        a_py=HEAD
        + "@asset\ndef customers(): ...\n@asset(checks=[foreign_key('customer_id', to='customers')])\ndef orders(raw): ...\n",
    )
    order = [key.name for key in made.graph.order]
    assert order.index("customers") < order.index("orders")
    orders = made.assets[next(key for key in made.assets if key.name == "orders")]
    assert [(one.kind, str(one.asset)) for one in orders.inputs if one.kind is InputKind.CHECK] == [
        (InputKind.CHECK, "shop.customers")
    ]
    assert foreign_key("customer_id", to="shop.customers").to == orders.checks[0].to  # type: ignore[attr-defined]


def fingerprints(folder: Path, body: str) -> dict[str, str]:
    made = project(folder, a_py=HEAD + body)
    return {key.name: one.fingerprint for key, one in made.assets.items()}


CODE = """
RATE = 2
def helper(x):
    return x
@asset
def a(raw):
    return helper(raw) * RATE
"""


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        (CODE.replace("def helper(x):\n", "def helper(x):\n    # said\n    'Doc.'\n"), False),
        (CODE.replace("    return helper(raw) * RATE", "    return (\n        helper(raw) * RATE\n    )"), False),
        (CODE.replace("@asset\n", "@asset(tags='x', description='said')\n"), False),
        (CODE.replace("@asset\n", "@asset(spark={'spark.sql.shuffle.partitions': 8})\n"), False),
        (CODE.replace("RATE = 2", "RATE = 3"), True),
        (CODE.replace("    return x\n", "    return x + 1\n"), True),
        (CODE.replace("helper(raw) * RATE", "helper(raw) + RATE"), True),
        (CODE.replace("def a(raw)", "def a(raw, n=1)"), True),
        (CODE.replace("@asset\n", "@asset(inputs={'raw': every('raw')})\n"), True),
        (CODE.replace("@asset\n", "@asset(mode='append')\n"), True),
    ],
)
def test_the_fingerprint_follows_what_is_computed(tmp_path: Path, changed: str, *, differs: bool) -> None:
    assert (fingerprints(tmp_path, CODE)["a"] != fingerprints(tmp_path, changed)["a"]) == differs


def test_settings_of_spark_are_an_assets_own_if_spark_takes_them_at_run_time(tmp_path: Path) -> None:
    query = "/*\nspark = {{ {} }}\n*/\nSELECT 1 AS n\n"
    made = project(tmp_path, a_sql=query.format('"spark.sql.shuffle.partitions" = 8, "spark.sql.adaptive.enabled" = true'))
    (only,) = made.assets.values()
    assert dict(only.spark) == {"spark.sql.shuffle.partitions": "8", "spark.sql.adaptive.enabled": "true"}
    with pytest.raises(
        InvalidInput, match=r"a\.sql:\d: Spark does not take spark\.executor\.cores for one asset"
    ) as refused:
        project(tmp_path, a_sql=query.format('"spark.executor.cores" = 8'))
    assert "under [spark] conf" in refused.value.one_line()


def test_loading_a_project_starts_no_spark(tmp_path: Path) -> None:
    project(tmp_path, a_py=HEAD + "@asset\ndef a(raw): ...\n")
    code = (
        "import sys; from pathlib import Path; from arco.servo.sdk.project import load_project;"
        f"load_project(Path({str(tmp_path)!r}), name='s', namespace='s');"
        "print(sorted({'pyspark', 'py4j', 'obstore', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_of_a_project_may_import_each_other(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        b_py=HEAD,
        a_py="from arco.servo.sdk.authoring import asset\nfrom assets.b import raw\n@asset(inputs={'x': raw})\ndef a(x): ...\n",
    )
    assert sorted(key.name for key in made.assets) == ["a", "raw"]
