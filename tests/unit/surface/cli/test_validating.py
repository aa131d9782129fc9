"""`arco validate`: what a project is, and everything that is wrong with it, where it is."""

from pathlib import Path

import pytest

from .shell import Shell, arco

__all__ = ["arco"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    return tmp_path


def project(folder: Path, **files: str) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "arco.toml").write_text('[project]\nname = "shop"\n')
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / "assets" / f"{stem}.{ending}").write_text(text)


GOOD = """
from arco import asset, changes_of, daily, files, foreign_key, source, unique, window

DAYS = daily("date", start="2025-01-01")
raw = source("raw", partitions=DAYS)

@asset(partitions=DAYS, inputs={"week": window("raw", -6, 0)}, checks=[unique("id")])
def orders(week): ...

@asset(mode="append", inputs={"new": changes_of("orders"), "drop": files("in/*.json")}, checks=[foreign_key("id", to="orders")])
def kept(new, drop): ...
"""


def test_what_a_project_is(arco: Shell, here: Path) -> None:
    project(here, a_py=GOOD, totals_sql="SELECT date, count(*) AS n FROM orders GROUP BY date")
    ended = arco("validate")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0] == ["stage", "asset", "kind", "partitions", "reads", "checks"]
    assert lines[1][:5] == ["0", "shop.raw", "source", "date", "(daily)"]
    assert lines[2] == ["1", "shop.orders", "python", "date", "(daily)", "shop.raw", "(window", "-6..0)", "unique(id)"]
    assert " ".join(lines[3]) == "2 shop.kept python changes of shop.orders, files in/*.json foreign_key(id)"
    assert lines[4] == ["2", "shop.totals", "sql", "shop.orders"]
    assert ended.out.splitlines()[-1].startswith("project shop: 4 assets, 2 checks, no problems; code version code_")
    assert not (here / "lake").exists()


def test_for_programs(arco: Shell, here: Path) -> None:
    project(here / "pipes", a_py=GOOD)
    found = arco("validate", "-p", "pipes", "--json").json
    assert found["problems"] == []
    assert [(one["key"], one["stage"], one["file"], one["line"]) for one in found["assets"]] == [
        ("shop.raw", 0, "assets/a.py", 5),
        ("shop.orders", 1, "assets/a.py", 7),
        ("shop.kept", 2, "assets/a.py", 10),
    ]
    assert [one["kind"] for one in found["assets"][2]["inputs"]] == ["changes", "files", "check"]


BAD = """
from arco import asset, last

@asset
def a(b): ...
@asset
def b(a): ...
@asset(inputs={"x": last("a")})
def c(x, costumers): ...
@asset
def customers(): ...
"""


def test_every_problem_with_its_place(arco: Shell, here: Path) -> None:
    project(here, a_py=BAD, b_py="from arco import asset\n\n@asset\ndef customers(): ...\n")
    ended = arco("validate")
    assert ended.code == 2
    assert [line for line in ended.out.splitlines() if not line.startswith("    ")] == [
        "assets/b.py:3: shop.customers is defined twice",
        "assets/a.py:8: shop.c reads 'costumers', and there is no such asset",
        "assets/a.py:8: shop.c reads shop.a: last() needs an input with partitions",
        "assets/a.py:4: these assets need each other: shop.a -> shop.b -> shop.a",
    ]
    assert "    the other is at assets/a.py:10" in ended.out
    assert "    did you mean 'customers'? Otherwise define it" in ended.out
    assert ended.err == "arco: project shop has 4 problems\n"


def test_places_are_named_from_where_the_command_is(arco: Shell, here: Path) -> None:
    project(here / "pipes", a_py="x = 1 / 0\n", q_sql="SELECT 1 +\n")
    ended = arco("validate", "--project", "pipes/")
    assert ended.code == 2
    starts = [line.partition(": ")[0] for line in ended.out.splitlines() if not line.startswith(" ")]
    assert starts == ["pipes/assets/q.sql:1", "pipes/assets/a.py:1"]
    (first, _) = arco("validate", "-p", "pipes", "--json").json["problems"]
    assert (first["file"], first["line"]) == ("pipes/assets/q.sql", 1)
    assert first["message"].startswith("the query does not parse")


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (None, "there is no arco.toml in"),
        ('[project]\nname = "shop"\nassets = ["nowhere"]\n', "does not exist"),
        ('[project]\nname = "shop"\ngate = "open"\n', "'open' is not a gating policy"),
        ('[project]\ncolour = "red"\n', "has no setting 'colour'"),
        ("[project\n", "does not parse"),
    ],
)
def test_a_file_that_is_wrong(arco: Shell, here: Path, toml: str | None, said: str) -> None:
    (here / "assets").mkdir()
    if toml is not None:
        (here / "arco.toml").write_text(toml)
    ended = arco("validate")
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_project_without_assets(arco: Shell, here: Path) -> None:
    project(here)
    ended = arco("validate")
    assert (ended.code, ended.out) == (
        2,
        "the project has no assets\n    write a function with @asset; arco init shows one\n",
    )
