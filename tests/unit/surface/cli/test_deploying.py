"""`arco deploy` and `arco rollback`, on a folder: what is said, what is refused, and what is written."""

import json
from pathlib import Path

import pytest

from .shell import Ended, Shell, arco

__all__ = ["arco"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "arco.toml").write_text('root = "lake"\n[project]\nname = "shop"\n')
    return tmp_path


def code(folder: Path, *assets: str) -> None:
    """A project of these assets, each written as options and a name."""
    body = "\n".join(f"@asset({one.partition('|')[2]})\ndef {one.partition('|')[0]}(): ..." for one in assets)
    (folder / "assets" / "a.py").write_text(f"from arco import asset, daily, static\n{body}\n")


def objects(folder: Path) -> list[str]:
    lake = folder / "lake"
    return sorted(str(path.relative_to(lake)) for path in lake.rglob("*.json")) if lake.exists() else []


def words(ended: Ended) -> list[str]:
    return [" ".join(line.split()) for line in ended.out.splitlines()]


def test_added_changed_renamed_and_retired(arco: Shell, here: Path) -> None:
    code(here, "a|", "b|", "c|")
    first = arco("deploy")
    assert first.code == 0
    assert words(first)[:3] == ["added shop.a", "added shop.b", "added shop.c"]
    assert words(first)[3].startswith("deployed shop as ")
    code(here, 'a|tags="x"', 'd|renamed_from="b"')
    assert words(arco("deploy"))[:3] == ["changed shop.a", "renamed shop.b to shop.d", "retired shop.c"]


def test_nothing_changed(arco: Shell, here: Path) -> None:
    code(here, "a|")
    arco("deploy")
    stored = objects(here)
    (here / "assets" / "a.py").write_text("# a comment\n\n" + (here / "assets" / "a.py").read_text())
    ended = arco("deploy")
    assert ended.code == 0
    assert ended.out.startswith("nothing changed: deployment ")
    assert objects(here) == stored


def test_a_dry_run_writes_nothing(arco: Shell, here: Path) -> None:
    code(here, "a|")
    assert words(arco("deploy", "--dry-run")) == ["added shop.a", "nothing was written: this was a dry run"]
    assert objects(here) == []
    found = arco("deploy", "--dry-run", "--json").json
    assert (found["deployment"], found["added"], found["dry_run"], found["news"]) == (None, ["shop.a"], True, True)


def test_what_breaks_readers_is_refused_with_the_way_out(arco: Shell, here: Path) -> None:
    code(here, 'a|schema={"id": "long not null", "n": "int"}')
    arco("deploy")
    stored = objects(here)
    code(here, 'a|schema={"id": "long not null", "n": "string", "note": "string"}')
    ended = arco("deploy")
    assert ended.code == 2
    reason = "rows written before cannot be read as the new type"
    way_out = "add a column of the new type beside the old one and move readers to it"
    assert words(ended) == [
        "changed shop.a",
        "schema of shop.a, backward compatible:",
        f"refused change a type in any other way: n (int → string): {reason}; {way_out}",
        "allowed add an optional column: note",
        "tables that have data cannot record this: every row has to be written again",
    ]
    assert ended.err.startswith(
        "arco: this deployment breaks what is published: shop.a is backward compatible: change a type"
    )
    assert "--allow-breaking" in ended.err
    assert ended.err.count("\n") == 1
    assert objects(here) == stored
    dry = arco("deploy", "--dry-run", "--json")
    assert (dry.code, len(dry.json["breaking"])) == (0, 1)
    forced = arco("deploy", "--allow-breaking", "--json").json
    assert forced["breaking"] == dry.json["breaking"]
    assert forced["verdicts"]["shop.a"]["compatibility"] == "backward"
    assert forced["deployment"] != forced["before"]


def test_other_dimensions_are_refused(arco: Shell, here: Path) -> None:
    code(here, 'a|partitions=daily("date", start="2025-01-01")')
    arco("deploy")
    code(here, 'a|partitions=static("region", ["de"])')
    ended = arco("deploy")
    assert ended.code == 2
    assert "shop.a is partitioned otherwise" in ended.err


def test_history_and_rollback(arco: Shell, here: Path) -> None:
    assert arco("deploy", "--history").out == "project shop was never deployed\n"
    code(here, "a|")
    first = arco("deploy", "--json").json["deployment"]
    code(here, "a|", "b|")
    second = arco("deploy", "--json").json["deployment"]
    ended = arco("rollback")
    assert ended.code == 0
    assert words(ended)[0] == "retired shop.b"
    assert words(ended)[1].startswith(f"deployment {first} of ")
    assert "Check out the code" in ended.out
    listed = arco("deploy", "--history")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [second, first]
    assert [line.endswith("counts") for line in listed.out.splitlines()[1:]] == [False, True]
    back = arco("rollback", "--to", second, "--json").json
    assert (back["deployment"], back["before"], back["added"]) == (second, first, ["shop.b"])
    found = arco("deploy", "--history", "--json").json
    assert found["current"] == second
    assert [one["deployment"] for one in found["deployments"]] == [second, first]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rollback",), "project shop was never deployed: arco deploy publishes it"),
        (("rollback", "--to", "01JD7Z0Q3V8K4M2N6P9R5T1WXY"), "project shop was never deployed"),
        (("deploy", "-p", "nowhere"), "there is no arco.toml in"),
        (("deploy", "--root", "ftp://x"), "ftp"),
    ],
)
def test_what_cannot_be_done_is_one_line(arco: Shell, here: Path, arguments: tuple[str, ...], said: str) -> None:
    code(here, "a|")
    ended = arco(*arguments)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_there_is_nothing_before_the_first(arco: Shell, here: Path) -> None:
    code(here, "a|")
    arco("deploy")
    assert "there is no deployment before this one" in arco("rollback").err
    assert "there is no deployment 01JD7Z0Q3V8K4M2N6P9R5T1WXY" in arco("rollback", "--to", "01JD7Z0Q3V8K4M2N6P9R5T1WXY").err
    assert arco("rollback", "--to", "nonsense").code == 2


def test_a_project_with_problems_is_not_deployed(arco: Shell, here: Path) -> None:
    (here / "assets" / "a.py").write_text("from arco import asset\n\n@asset\ndef a(x, y): ...\n")
    ended = arco("deploy")
    assert ended.code == 2
    assert "1 more problem: arco validate lists it" in ended.err
    assert objects(here) == []


@pytest.mark.parametrize("command", ["init", "validate", "deploy", "rollback"])
def test_help_teaches(arco: Shell, command: str) -> None:
    ended = arco(command, "--help")
    assert ended.code == 0
    assert "Example" in ended.out
    assert f"arco {command}" in ended.out


def hints(folder: Path) -> list[str]:
    return [name for name in objects(folder) if "/hints/" in name]


def test_where_folds_do_not_list_a_deployment_is_said_to_them_and_nowhere_else(
    arco: Shell, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code(here, "a|")
    arco("deploy")
    assert hints(here) == [], "folds find it by themselves"
    with (here / "arco.toml").open("a") as file:
        file.write("[fold]\nlisting = false\n")
    code(here, "a|", "b|")
    assert arco("deploy").code == 0
    (name,) = hints(here)
    assert name.endswith("/hints/catalog.json")
    (segment,) = json.loads((here / "lake" / name).read_text())["segments"]
    assert '"shop.b"' in (here / "lake" / segment).read_text()
    monkeypatch.setenv("ARCO_FOLD_LISTING", "true")
    code(here, "a|", "b|", "c|")
    assert arco("deploy").code == 0
    assert json.loads((here / "lake" / name).read_text())["segments"] == [segment], "the environment says otherwise"


@pytest.mark.parametrize("said", ["listing = 1", 'lists = "no"'])
def test_a_word_about_the_fold_that_is_not_understood_is_refused(arco: Shell, here: Path, said: str) -> None:
    code(here, "a|")
    with (here / "arco.toml").open("a") as file:
        file.write(f"[fold]\n{said}\n")
    ended = arco("deploy")
    assert (ended.code, "[fold] in arco.toml is not understood" in ended.err) == (2, True)
