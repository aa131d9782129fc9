"""Everything that is wrong with a project is said, each with its place; and queries are read as Spark reads them."""

import textwrap
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.quality.gates import Action
from arco.servo.execute.spark_code import rewritten
from arco.servo.sdk.problems import own_hint
from arco.servo.sdk.project import examine_project, load_project
from arco.servo.sdk.sql_assets import read_sql_asset, tables_of


def problems(folder: Path, **files: str) -> list[str]:
    (folder / "assets").mkdir(exist_ok=True)
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / "assets" / f"{stem}.{ending}").write_text(textwrap.dedent(text))
    project, found = examine_project(folder, name="shop", namespace="shop")
    assert (project is None) == bool(found.found)
    said = (f"{one.message}: {own_hint(one)}" if own_hint(one) else one.message for one in found.found)
    return [one.replace(f"{folder}/", "") for one in said]


HEAD = "from arco import Retention, Retry, asset, daily, every, foreign_key, in_range, last, source, static, window\n"


def test_problems_of_every_kind_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        a_py=HEAD
        + """
        orders = source("orders", partitions=daily("date", start="2025-01-01"))

        @asset
        def a(b): ...
        @asset
        def b(a): ...
        @asset
        def c(d): ...
        @asset
        def d(c): ...
        @asset
        def reader(order, nowhere): ...
        @asset(inputs={"x": window("orders", -1, 0)})
        def shifted(x): ...
        @asset(checks=[foreign_key("id", to="custmers")])
        def customers(): ...
        """.replace("\n        ", "\n"),
        b_py=HEAD + "@asset\ndef reader(orders): ...\n",
    )
    unknown = "and there is no such asset"
    assert [said.partition(": define it")[0].partition(" Otherwise define it")[0] for said in found] == [
        "assets/b.py:2: shop.reader is defined twice: the other is at assets/a.py:13",
        f"assets/a.py:13: shop.reader reads 'order', {unknown}: did you mean 'orders'?",
        f"assets/a.py:13: shop.reader reads 'nowhere', {unknown}",
        f"assets/a.py:17: shop.customers reads 'custmers', {unknown}: did you mean 'customers'?",
        "assets/a.py:15: shop.shifted reads shop.orders: a window needs one time dimension that both have: name it",
        "assets/a.py:5: these assets need each other: shop.a -> shop.b -> shop.a: one of them must not read the other",
        "assets/a.py:9: these assets need each other: shop.c -> shop.d -> shop.c: one of them must not read the other",
    ]


CHANGES = """from arco import asset, changes_of, daily, source
raw = source("raw")
@asset({})
def new_rows(new): ...
"""


@pytest.mark.parametrize("options", ["", "mode='full', ", "mode='append', partitions=daily('date', start='2025-01-01'), "])
def test_changes_are_read_only_where_a_publish_keeps_what_earlier_ones_made(tmp_path: Path, options: str) -> None:
    found = problems(tmp_path, a_py=CHANGES.format(options + "inputs={'new': changes_of('raw')}"))
    assert len(found) == 1
    assert found[0].startswith("assets/a.py:3: shop.new_rows reads shop.raw: changes_of gives only the rows that are new, ")
    assert found[0].endswith("""'append' or 'merge', and leave partitions out; or read all of it: every('shop.raw')""")


@pytest.mark.parametrize("options", ["mode='append', ", "mode='merge', key='id', "])
def test_changes_are_for_appends_and_merges_without_partitions(tmp_path: Path, options: str) -> None:
    assert problems(tmp_path, a_py=CHANGES.format(options + "inputs={'new': changes_of('raw')}")) == []


def test_changes_of_a_query_are_held_to_the_same(tmp_path: Path) -> None:
    query = "/*\ninputs = { raw = 'changes' }\n*/\nSELECT * FROM raw\n"
    found = problems(tmp_path, a_py='from arco import source\nraw = source("raw")\n', new_rows_sql=query)
    assert [one.partition(": changes_of")[0] for one in found] == ["assets/new_rows.sql:4: shop.new_rows reads shop.raw"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("@asset(retry=-1)\ndef a(): ...\n", "assets/a.py:2: retry: attempts is -1: a whole number from 0 on"),
        ("@asset(retry=Retry(pause_s=-1))\ndef a(): ...\n", "assets/a.py:2: retry pauses -1 s"),
        ("@asset(retention=Retention(days=-1))\ndef a(): ...\n", "assets/a.py:2: retention: days is -1"),
        ("@asset(retention=Retention(versions_max=1))\ndef a(): ...\n", "assets/a.py:2: retention: versions_max is 1"),
        ("@asset(tags=5)\ndef a(): ...\n", "assets/a.py:2: tags=5 is not a text or a list of texts"),
        ("@asset(owners=['x', None])\ndef a(): ...\n", "assets/a.py:2: owners=['x', None] is not a text"),
        ("@asset(partition_by=['dya(at)'])\ndef a(): ...\n", "assets/a.py:2: partition_by 'dya(at)' is not known: write"),
        ("@asset(partition_by='bucket(at)')\ndef a(): ...\n", "assets/a.py:2: partition_by 'bucket(at)' is not known"),
        ("@asset(sort_by='at sideways')\ndef a(): ...\n", "assets/a.py:2: sort_by 'at sideways' is not a column: write"),
    ],
)
def test_options_are_looked_at_when_they_are_written(tmp_path: Path, code: str, said: str) -> None:
    (found,) = problems(tmp_path, a_py=HEAD + code)
    assert found.startswith(said)


def test_two_assets_never_publish_to_one_table(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        a_py=HEAD
        + """
        @asset(checks=[in_range("x", min=0, quarantine_rows=True)])
        def a(): ...
        @asset(table="shop.a")
        def b(): ...
        @asset
        def a__quarantine(): ...
        theirs = source("theirs", table="shop.a")
        mine = source("mine", table="crm.people")
        yours = source("yours", table="crm.people")
        """.replace("\n        ", "\n"),
    )
    assert [said.partition(", which")[0] for said in found] == [
        "assets/a.py:5: shop.b has the table shop.a",
        "assets/a.py:7: shop.a__quarantine has the table shop.a__quarantine",
        "assets/a.py:9: shop.theirs has the table shop.a",
    ]


def test_a_foreign_key_to_its_own_asset_is_not_called_a_circle_of_two(tmp_path: Path) -> None:
    tree = (
        HEAD
        + "from arco import foreign_key\n@asset(checks=[foreign_key('up', to='tree', to_columns='id')])\ndef tree(): ...\n"
    )
    (found,) = problems(tmp_path, a_py=tree)
    assert found.startswith("assets/a.py:3: shop.tree: foreign_key(up) compares it with itself")
    assert "sql_check(" in found


def test_the_place_of_an_error_is_the_line_of_the_project_that_it_came_from(tmp_path: Path) -> None:
    udf = "from pyspark.sql import functions as F\n\n\n@F.udf('long')\ndef twice(x):\n    return 2 * x\n"
    found = problems(tmp_path, a_py="import assets.lib\n", lib_py="def broken():\n    1 / 0\n\n\nbroken()\n")
    assert {said.partition(": the file")[0] for said in found} == {"assets/lib.py:2: ZeroDivisionError: division by zero"}
    found = problems(tmp_path, a_py="from assets.lib import twice\n", lib_py=udf)
    assert {said.partition(" ")[0] for said in found} == {"assets/lib.py:4:"}
    assert all(
        "importing a project starts no Spark: name types by their classes, udf(LongType())" in said for said in found
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/*\ntags = ['x']\nretry = -1\n*/\nSELECT 1", "assets/q.sql:3: retry: attempts is -1"),
        ("/* partitions = [{ name = 'd', kind = 'dayly' }] */\nSELECT 1", "assets/q.sql:1: dimension d is 'dayly'"),
        ("/*\n\nchecks = [\n  { not_nul = 'x' },\n]\n*/\nSELECT 1", "assets/q.sql:3: a check of the header names no kind"),
        ("/*\nmode = 'merge'\n*/\nSELECT 1", "assets/q.sql:2: merge needs a key"),
        (
            "\nSELECT :low AS x",
            "assets/q.sql:2: the query has :low, and the header has no such parameter: there are :partition",
        ),
        ("SELECT a\nFROM raw\nWHERE at >= :partition_start", "assets/q.sql:1: the query has :partition_start"),
        ("SELECT a\nFROM raw VERSION AS OF 3", "assets/q.sql:1: the query reads a version of raw of its own choice"),
        ("SELECT a FROM\nWHERE x", "assets/q.sql:2: the query does not parse near 'WHERE': Expected table name: mend it"),
    ],
)
def test_what_is_wrong_with_a_query_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (found,) = problems(tmp_path, q_sql=text)
    assert found.startswith(said)


DAY = '{ name = "date", kind = "daily", start = 2025-01-01 }'


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ('partitions = "daily"', f"partitions has 'daily': write partitions = [{DAY}]"),
        ('partitions = ["date"]', f"partitions has 'date': write partitions = [{DAY}]"),
        ("partitions = [{ name = 'date', kind = 'daily', start = 2025-01-01, ends = 2025-02-01 }]",
         "dimension date has no 'ends'"),
        ("partitions = [{ name = 'r', kind = 'static', values = 'de' }]",
         "the values of dimension r are one text, 'de': list them"),
        ("checks = 'unique'", "checks has 'unique': write checks = [{ not_null = "),
        ("checks = [{ in_range = { min = 0 } }]", "check in_range lacks 'column': there are column, min, max"),
        ("checks = [{ unique = 'id', severty = 'warning' }]", "check unique has no 'severty': there are allow_null, severity"),
        ("checks = [{ row_count = 3 }]", "check row_count is a table of settings: there are min, max"),
        ("retention = { day = 3 }", "retention has no 'day': there are days"),
        ("gate = { error = 'fail_task' }", "gate lacks 'name': there are name"),
        ("inputs = 'every'", "inputs = 'every' names nothing: write inputs = {"),
        ("inputs = { raw = { window = 3 } }", "input raw is mapped by {'window': 3}: same, every"),
        ("inputs = { rew = 'every' }", "the header maps 'rew', and the query does not read it"),
        ("parameters = 3", "parameters = 3 names nothing"),
        ("partitions_per_task = '3'", "partitions_per_task is '3': how many"),
        ("spark = 3", "spark = 3 is not understood: docs/projects.md"),
        ("resources = ['warehouse']", "resources = ['warehouse'] is not understood"),
        ("tags = { a = 1 }", "tags={'a': 1} is not a text or a list of texts"),
        ("table = 4", "table=4 is not a text"),
        ("key = 'id'", "merge needs a key, and only merge has one"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_header_is_said_of_its_option_and_not_in_words_of_python(
    tmp_path: Path, option: str, said: str
) -> None:
    (found,) = problems(tmp_path, q_sql=f"/*\ndescription = 'x'\n{option}\n*/\nSELECT id FROM raw\n")
    assert found.startswith(f"assets/q.sql:3: {said}")


def test_one_dimension_of_a_header_needs_no_list(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"/*\npartitions = {DAY}\nchecks = {{ not_null = 'id' }}\n*/\nSELECT 1 AS id")
    made = read_sql_asset(tmp_path / "a.sql")
    assert (made.partitions.names, [one.name for one in made.checks]) == (("date",), ["not_null(id)"])


def test_what_a_query_may_name_without_a_table(tmp_path: Path) -> None:
    query = (
        "/*\npartitions = [{ name = 'd', kind = 'daily', start = 2025-01-01 }]\nparameters = { low = 1 }\n*/\n"
        "SELECT :low AS low, :partition_start AS first, ':no' AS text, 'a' :: string AS b"
    )
    assert problems(tmp_path, q_sql=query) == []


def test_files_that_cannot_be_read_are_all_said_and_their_readers_are_not_blamed(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        a_py=HEAD + "@asset(partitions=daily('date', start='2025-13-01'))\ndef a(): ...\n",
        b_py=HEAD + "@asset(sorted='x')\ndef b(a): ...\n",
        c_py=HEAD + "@asset\ndef c(a, b): ...\n",
        d_py="def broken(:\n",
        e_py="import nothing_of_this_name\n",
        f_py=HEAD + "@asset(schema={'id': 'number'})\ndef f(): ...\n",
        q_sql="SELECT *\nFROM a\nWHERE (",
        h_sql="/*\ntags = x\n*/\nSELECT 1",
        o_sql="/*\n\nsorted = 'x'\n*/\n\nSELECT 1",
        p_sql="/* partitions = [{ name = 'date', kind = 'daily' }] */ SELECT 1",
        r_sql="/* open",
        s_sql="\n\nDROP TABLE x",
        t_sql="/* checks = [{ unique_key = 'id' }] */ SELECT 1",
        u_sql="/* partitions = 3 */ SELECT 1",
        v_sql="/* schema = { id = 'number' } */ SELECT 1",
    )
    starts = [
        "assets/h.sql:2: the header is not TOML",
        "assets/o.sql:3: the header has no option 'sorted': one of",
        "assets/p.sql:1: dimension date lacks 'start': there are name, start, end",
        "assets/q.sql:3: the query does not parse",
        "assets/r.sql:1: the header has no end",
        "assets/s.sql:3: a SQL asset is one SELECT",
        "assets/t.sql:1: a check of the header names no kind",
        "assets/u.sql:1: partitions has 3: write partitions = [",
        "assets/v.sql:1: 'number' is not a type",
        "assets/a.py:2: start=2025-13-01 is not a date",
        "assets/b.py:2: asset has no option 'sorted'",
        "assets/d.py:1: SyntaxError: ",
        "assets/e.py:1: ModuleNotFoundError: No module named 'nothing_of_this_name'",
        "assets/f.py:2: 'number' is not a type",
    ]
    assert len(found) == len(starts)
    for said, start in zip(found, starts, strict=True):
        assert said.startswith(start)
        assert "\n" not in said
        assert "\x1b" not in said


def test_a_way_into_a_circle_is_not_part_of_it(tmp_path: Path) -> None:
    code = HEAD + "@asset\ndef a(b): ...\n@asset\ndef b(c): ...\n@asset\ndef c(b): ...\n@asset\ndef z(a): ...\n"
    assert problems(tmp_path, a_py=code) == [
        "assets/a.py:4: these assets need each other: shop.b -> shop.c -> shop.b: one of them must not read the other"
    ]


def test_loading_raises_the_first_and_counts_the_rest(tmp_path: Path) -> None:
    assert len(problems(tmp_path, a_py=HEAD + "@asset\ndef a(x, y, z): ...\n")) == 3
    with pytest.raises(InvalidInput, match="reads 'x'") as raised:
        load_project(tmp_path, name="shop", namespace="shop")
    assert str(raised.value.hint).endswith("2 more problems: arco validate lists them")


def test_nothing_at_all(tmp_path: Path) -> None:
    assert problems(tmp_path) == ["the project has no assets: write a function with @asset; arco init shows one"]


def test_a_header_has_the_words_of_the_decorator(tmp_path: Path) -> None:
    words = (
        'schema = { id = "long not null" }\nretention = { days = 3 }\nretry = { attempts = 5 }\n'
        'gate = { name = "mine", error = "quarantine" }\nresources = { cores = 2 }\n'
    )
    (tmp_path / "a.sql").write_text(f"/*\n{words}*/\n\n-- rows\nSELECT 1 AS id\n")
    made = read_sql_asset(tmp_path / "a.sql")
    assert [(one.name, one.type, one.required) for one in made.schema.columns] == [("id", "long", True)]
    assert (made.retention.days, made.retry.attempts, made.resources) == (3, 5, {"cores": 2})
    assert made.gate is not None
    assert (made.gate.error, made.gate.critical) == (Action.QUARANTINE, Action.FAIL_RUN)
    assert made.where.line == 9


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("WITH orders AS (SELECT * FROM orders WHERE ok) SELECT * FROM orders", ["orders"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a, b", ["b"]),
        ("WITH a AS (WITH b AS (SELECT * FROM c) SELECT * FROM b) SELECT * FROM a JOIN b", ["b", "c"]),
        ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t", []),
        ("WITH x AS (SELECT 1) SELECT * FROM (SELECT * FROM x) q, db.x", ["db.x"]),
        ("(WITH x AS (SELECT 1) SELECT * FROM x) UNION ALL SELECT * FROM x", ["x"]),
        ("SELECT * FROM range(10)", []),
    ],
)
def test_a_name_means_what_spark_says_it_means(query: str, tables: list[str]) -> None:
    assert tables_of(query) == tables


def test_only_tables_that_are_read_get_the_names_of_views() -> None:
    query = "WITH orders AS (SELECT * FROM orders WHERE ok) SELECT orders.id FROM orders JOIN raw.x"
    assert rewritten(query, {"orders": "v0", "raw.x": "v1"}) == (
        "WITH orders AS (SELECT * FROM v0 AS `orders` WHERE ok) SELECT orders.id FROM orders JOIN v1 AS `x`"
    )
    assert rewritten("SELECT id FROM orders TABLESAMPLE (5 PERCENT)", {"orders": "v0"}) == (
        "SELECT id FROM v0 TABLESAMPLE (5 PERCENT)"
    )
