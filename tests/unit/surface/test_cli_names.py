"""The commands on names, on a folder: what people read, what programs read, and what a command leaves behind."""

import asyncio
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stand_ins.lake import Lake, pointer_object
from unit.surface.cli.shell import Ended, Shell, arco

__all__ = ["arco"]

LONG = "a_name_that_is_longer_than_any_terminal_is_wide_" * 4
ARCO = str(Path(sys.executable).with_name("arco"))


async def founded(base_uri: str) -> Lake:
    lake = Lake(base_uri=base_uri)
    await lake.namespace("shop")
    await lake.namespace("shop", "raw")
    await lake.namespace("eu.west")
    await lake.namespace("empty")
    await lake.table(("shop",), "orders", commits=2)
    await lake.describe((("shop",), "orders"), owner="ann", tags=["gold"], description="All [red]orders.")
    await lake.table(("eu.west",), "orders")
    await lake.table(("shop", "raw"), LONG)
    await lake.other(("shop",), "events", properties={"a": "1"})
    await lake.describe((("shop",), "events"), pii_columns={"m": "email"}, row_count=1234, size_bytes=5678)
    await lake.view(("shop",), "report")
    await lake.table(("shop",), "old", commits=1)
    await lake.drop((("shop",), "old"))
    await lake.table(("shop",), "first")
    await lake.rename((("shop",), "first"), (("shop",), "second"))
    await lake.settle()
    return lake


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lake]:
    """A lake, and the folder that its locations name."""
    home = tmp_path_factory.mktemp("home").resolve()
    return home, asyncio.run(founded(f"file://{home}/lake"))


@pytest.fixture(autouse=True)
def folder(made: tuple[Path, Lake], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command starts beside a fresh lake, and finds it by its settings."""
    home, lake = made
    monkeypatch.chdir(home)
    monkeypatch.setenv("ARCO_ROOT", "lake")
    monkeypatch.setenv("COLUMNS", "80")
    shutil.rmtree(home / "lake", ignore_errors=True)
    asyncio.run(lake.write_to(home / "lake"))
    return home


def objects(folder: Path) -> dict[str, bytes]:
    """Everything in the lake but the local store's own folder."""
    lake = folder / "lake"
    return {
        str(path.relative_to(lake)): path.read_bytes()
        for path in lake.rglob("*")
        if path.is_file() and ".arco" not in path.relative_to(lake).parts
    }


def at_a_terminal(folder: Path, answer: bytes, *arguments: str, columns: int = 80) -> tuple[int, str]:
    """A real process at a real terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [ARCO, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**os.environ, "COLUMNS": str(columns)},
    )
    os.close(theirs)
    os.write(ours, answer)
    said = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(ours)
    return process.wait(60), said.decode()


def names(ended: Ended) -> list[str]:
    return [".".join([*one["namespace"], one["name"]]) for one in ended.json["tables"]]


# ls


def test_ls_shows_everything_by_name(arco: Shell) -> None:
    ended = arco("ls")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["name", "kind", "format", "owner", "tags", "created", "(UTC)"]
    assert [line.split()[0] for line in lines[1:-2]] == [
        '"eu.west".orders', "shop.events", "shop.orders", f"shop.raw.{LONG}", "shop.report", "shop.second",
    ]  # fmt: skip
    assert lines[3].split()[:5] == ["shop.orders", "table", "ICEBERG", "ann", "gold"]
    assert lines[-2:] == ["5 tables, 1 view in 4 namespaces", "Nothing in: empty"]


def test_ls_is_not_cut_when_nobody_looks(arco: Shell) -> None:
    assert f"shop.raw.{LONG} " in arco("ls").out


def test_no_column_of_a_narrow_terminal_vanishes(folder: Path) -> None:
    for arguments in (("ls", "--dropped"), ("history", "shop.old")):
        code, said = at_a_terminal(folder, b"", *arguments, columns=72)
        assert code == 0
        assert "2025-01-01 00:" in said
        assert max(len(line) for line in said.splitlines() if "\x1b" not in line) <= 72


def test_ls_is_filtered(arco: Shell) -> None:
    assert names(arco("ls", "shop.raw", "--json")) == [f"shop.raw.{LONG}"]
    assert names(arco("ls", '"eu.west"', "--json")) == ["eu.west.orders"]
    assert names(arco("ls", "--views", "--json")) == ["shop.report"]
    assert names(arco("ls", "--format", "delta", "--json")) == ["shop.events"]
    assert names(arco("ls", "shop", "--tables", "--format", "ICEBERG", "--json"))[0] == "shop.orders"
    assert names(arco("ls", "empty", "--json")) == []
    assert arco("ls", "--json").json["namespaces"] == [["empty"], ["eu.west"], ["shop"], ["shop", "raw"]]


def test_ls_of_what_was_dropped(arco: Shell) -> None:
    ended = arco("ls", "--dropped")
    assert ended.out.splitlines()[1].split()[:3] == ["shop.old", "ICEBERG", "table"]
    (lost,) = arco("ls", "--dropped", "--json").json["dropped"]
    assert lost["drop_id"] in ended.out
    assert (lost["name"], lost["dropped_by"], lost["purge"]) == ("old", "ann", False)
    assert arco("ls", "--dropped", "shop.raw").out == "Nothing that was dropped can be restored.\n"


def test_ls_of_a_root_without_a_catalog_says_so_and_makes_nothing(arco: Shell, folder: Path) -> None:
    ended = arco("ls", "--root", "other")
    assert ended.code == 0
    assert ended.err == "arco: there is no catalog default/default in file://other yet\n"
    assert not (folder / "other").exists()


def test_another_workspace_is_another_catalog(arco: Shell) -> None:
    ended = arco("ls", "--warehouse", "default/other", "--json")
    assert (ended.json, ended.code) == ({"tables": [], "namespaces": []}, 0)
    assert arco("ls", "--warehouse", "other").code == 2


# show


def test_show_an_iceberg_table(arco: Shell) -> None:
    out = arco("show", "shop.orders").out
    for text in (
        "ICEBERG table",
        "All [red]orders.",
        "gold",
        "none: nothing was written yet",
        "n=1",
        "\na       long  yes\n",
    ):
        assert text in out
    plain = arco("show", "shop.orders", "--json").json
    assert plain["iceberg"]["commit_number"] == 2
    assert plain["iceberg"]["metadata_location"] in out
    assert plain["columns"][0]["type"] == "long"


def test_show_another_format_and_a_view(arco: Shell) -> None:
    out = arco("show", "shop.events").out
    for text in ("DELTA table", "s3://elsewhere/shop.events", "1,234", "5.7 kB", "a=1"):
        assert text in out
    out = arco("show", "shop.report").out
    assert "-- spark\nselect 1 as a\n" in out


def test_what_a_client_wrote_is_harmless_to_a_terminal(arco: Shell, folder: Path) -> None:
    plain = arco("show", "shop.orders", "--json").json
    file = Path(plain["iceberg"]["metadata_location"].removeprefix("file://"))
    evil = "\\u001b]0;owned\\u0007\\u202e\\u009b31m"
    file.write_text(file.read_text().replace('"n":"1"', f'"n":"{evil}"'))
    out = arco("show", "shop.orders").out
    assert "n=\ufffd]0;owned\ufffd\ufffd\ufffd31m" in out
    assert "\x1b" not in out
    assert arco("show", "shop.orders", "--json").json["properties"]["n"] == "\x1b]0;owned\x07\u202e\x9b31m"


def test_show_what_has_dots_in_its_name(arco: Shell) -> None:
    assert arco("show", '"eu.west".orders', "--json").json["namespace"] == ["eu.west"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("shop.old", "it was dropped: arco undrop 'shop.old' restores it"),
        ("shop.first", "it is called shop.second now"),
        ("nope.x", "there is no namespace nope"),
        ("shop.nope", "arco ls 'shop' lists what there is"),
        ("orders", "has no namespace"),
        ("shop..orders", "is not a name"),
    ],
)
def test_a_name_that_is_not_there_says_where_it_may_be(arco: Shell, name: str, says: str) -> None:
    for command in (("show", name), ("drop", name, "--yes"), ("rename", name, "shop.x")):
        ended = arco(*command)
        assert ended.code == 2
        assert ended.err.count("\n") == 1
        assert says in ended.err


def test_a_table_is_no_namespace(arco: Shell) -> None:
    ended = arco("ls", "shop.orders")
    assert ended.code == 2
    assert "arco show 'shop.orders' shows it" in ended.err
    assert "there is no namespace nope" in arco("ls", "nope").err


def test_metadata_outside_the_root_is_read_where_it_is_allowed(arco: Shell, folder: Path) -> None:
    plain = arco("show", "shop.orders", "--json").json
    outside = folder / "outside" / "00002-x.metadata.json"
    outside.parent.mkdir(exist_ok=True)
    outside.write_bytes(Path(plain["iceberg"]["metadata_location"].removeprefix("file://")).read_bytes())
    pointer = folder / "lake" / pointer_object(plain["uuid"])
    fields = json.loads(pointer.read_bytes())
    fields["metadata_location"] = f"file://{outside}"
    pointer.write_text(json.dumps(fields))
    for command in (("show", "shop.orders"), ("history", "shop.orders")):
        refused = arco(*command)
        assert refused.code == 2
        assert "pass --allow-location for the folder of its metadata" in refused.err
        assert arco(*command, "--allow-location", f"file:{outside.parent}").code == 0
    assert "metadata_out_of_reach" in arco("verify").out
    assert arco("verify", "--allow-location", f"file:{outside.parent}").code == 0


# history


def test_history_is_newest_first(arco: Shell) -> None:
    lines = arco("history", "shop.orders").out.splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["described", "committed", "committed", "committed", "created"]
    assert lines[1].rstrip().endswith("description, owner, tags")
    assert lines[2].rstrip().endswith("(current)")
    assert "from shop.first to shop.second" in arco("history", "shop.second").out
    assert "3 more: --limit 0 shows all" in arco("history", "shop.orders", "--limit", "2").out
    assert len(arco("history", "shop.orders", "--limit", "0", "--json").json["happenings"]) == 5


def test_history_says_who_did_it(arco: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "carol")
    arco("rename", "shop.orders", "shop.sales")
    head, newest, *_ = arco("history", "shop.sales").out.splitlines()
    assert head.split() == ["when", "(UTC)", "what", "who"]
    told = arco("history", "shop.sales", "--json").json["happenings"]
    assert [(one["what"], one["by"]) for one in told] == [
        ("renamed", "carol"),
        ("described", "ann"),
        *[("committed", "anonymous")] * 3,
        ("created", "anonymous"),
    ]
    client = told[0]["client"]
    assert client.startswith("arco-cli/")
    assert f"carol, {client}" in newest


def test_history_of_a_dropped_table(arco: Shell) -> None:
    told = arco("history", "shop.old", "--json").json["happenings"]
    assert [one["what"] for one in told] == ["dropped", "committed", "committed", "created"]
    assert arco("history", "shop.old").out.splitlines()[1].split()[2] == "dropped"


def test_history_of_what_never_was(arco: Shell) -> None:
    assert "it is called shop.second now" in arco("history", "shop.first").err


# drop, undrop, rename


def test_a_table_is_dropped_and_restored(arco: Shell) -> None:
    ended = arco("drop", "shop.orders", "--yes")
    assert ended.code == 0
    assert ended.out.startswith("Dropped table shop.orders.\nRestore it with: arco undrop --drop-id ")
    drop_id = ended.out.split()[-1]
    assert arco("show", "shop.orders").code == 2
    assert arco("undrop", "--drop-id", drop_id).out == "Restored shop.orders.\n"
    restored = arco("show", "shop.orders", "--json").json
    assert (restored["binding"], restored["iceberg"]["commit_number"], restored["owner"]) == (2, 2, "ann")
    assert arco("verify", "--deep").code == 0


def test_a_drop_is_restored_under_another_name(arco: Shell) -> None:
    assert arco("undrop", "shop.old", "--as", '"eu.west"."a.b"').out == 'Restored "eu.west"."a.b".\n'
    assert arco("show", '"eu.west"."a.b"', "--json").json["former_names"][0]["name"] == "old"


def test_who_dropped_a_table_is_remembered(arco: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "carol")
    arco("drop", "shop.events", "--yes")
    assert {one["name"]: one["dropped_by"] for one in arco("ls", "--dropped", "--json").json["dropped"]}[
        "events"
    ] == "carol"


def test_nothing_is_dropped_where_nobody_can_be_asked(arco: Shell, folder: Path) -> None:
    before = objects(folder)
    ended = arco("drop", "shop.orders")
    assert ended.code == 2
    assert ended.err == "arco: there is nobody to ask whether to drop it: pass --yes\n"
    assert objects(folder) == before


def test_purge_is_only_for_what_arco_keeps(arco: Shell) -> None:
    ended = arco("drop", "shop.events", "--purge", "--yes")
    assert ended.code == 2
    assert "not Arco's to purge" in ended.err
    assert arco("drop", "shop.orders", "--purge", "--yes").out.endswith("Its files will be deleted by upkeep.\n")


def test_a_person_is_asked_first(arco: Shell, folder: Path) -> None:
    before = objects(folder)
    code, said = at_a_terminal(folder, b"n\n", "drop", "shop.orders")
    assert code == 1
    assert "Drop ICEBERG table shop.orders at " in said
    assert "Nothing was changed." in said
    assert objects(folder) == before
    code, said = at_a_terminal(folder, b"y\n", "drop", "shop.orders", "--purge")
    assert code == 0
    assert "and delete its files?" in said
    assert arco("show", "shop.orders").code == 2


def test_a_table_is_renamed_also_into_another_namespace(arco: Shell) -> None:
    assert arco("rename", "shop.orders", "shop.raw.orders").out == "Renamed table shop.orders to shop.raw.orders.\n"
    assert arco("show", "shop.raw.orders", "--json").json["owner"] == "ann"
    ended = arco("rename", "shop.raw.orders", "shop.events")
    assert ended.code == 2
    assert "already exists" in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("undrop",),
        ("undrop", "shop.orders"),
        ("undrop", "--drop-id", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("undrop", "shop.old", "--as", "shop.orders"),
        ("undrop", "shop.old", "--as", "nowhere.orders"),
        ("rename", "shop.orders", "orders"),
        ("rename", "shop.orders", "nowhere.orders"),
        ("history", "shop.orders", "--limit", "-1"),
        ("ls", "--format", "xml"),
        ("show",),
    ],
)
def test_a_refused_command_changes_nothing(arco: Shell, folder: Path, command: tuple[str, ...]) -> None:
    manifest = "default/default/_catalog/manifests/catalog.manifest.json"
    before = objects(folder)[manifest]
    ended = arco(*command)
    assert ended.code == 2
    assert ended.err
    assert "Traceback" not in ended.err
    assert objects(folder)[manifest] == before


# verify


def test_verify_of_a_whole_root(arco: Shell, folder: Path) -> None:
    before = objects(folder)
    ended = arco("verify", "--deep")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "Verifying default/default in file://lake"
    assert lines[-1] == "Clean."
    assert "4 namespaces, 4 Iceberg tables, 1 view, 1 other table, 1 dropped" in ended.out
    assert objects(folder) == before


def test_verify_of_a_damaged_root(arco: Shell, folder: Path) -> None:
    uuid = arco("show", "shop.orders", "--json").json["uuid"]
    (folder / "lake" / pointer_object(uuid)).unlink()
    ended = arco("verify")
    assert ended.code == 1
    assert ended.out.splitlines()[-2:] == [
        "1 finding:",
        "  pointer_missing: table shop.orders has no pointer: restore it from a backup or a copy of the root",
    ]
    plain = arco("verify", "--json")
    assert plain.code == 1
    assert plain.json["clean"] is False
    assert [one["code"] for one in plain.json["findings"]] == ["pointer_missing"]


def test_verify_reads_what_lies_beside_the_catalog(arco: Shell, folder: Path) -> None:
    page = folder / "lake/default/default/_catalog/feed/pages/000000000001.json"
    page.parent.mkdir(parents=True)
    page.write_text("{}")
    (page.parent / "mine.txt").write_text("")
    ended = arco("verify")
    assert ended.code == 1
    assert "  feed      1 page, 0 checkpoints" in ended.out
    assert "  note: unknown: default/default/_catalog/feed/pages/mine.txt is no object of Arco" in ended.out
    name = page.relative_to(folder / "lake").as_posix()
    assert [one["subject"] for one in arco("verify", "--json").json["findings"]] == [name]


@pytest.mark.parametrize("command", ["verify", "upkeep", "purge --older-than 30d --yes"])
@pytest.mark.parametrize("is_there", [False, True], ids=["no folder", "an empty folder"])
def test_a_root_in_which_nothing_is_does_not_go_well_unnoticed(
    arco: Shell, tmp_path: Path, command: str, is_there: bool
) -> None:
    """Most likely it is misspelt, and in a job nobody reads what is said."""
    root = tmp_path / "other"
    if is_there:
        root.mkdir()
    for more in ([], ["--json"]):
        ended = arco(*command.split(), "--root", str(root), *more)
        assert (ended.code, ended.out) == (2, "")
        assert (
            ended.err == f"arco: there is no catalog default/default in file://{root} yet: check --root and --warehouse\n"
        )
    assert root.exists() is is_there
    assert arco(*command.split(), "--warehouse", "default/nowhere").code == 2


@pytest.mark.parametrize("command", ["verify", "upkeep"])
def test_a_workspace_that_was_just_created_is_fine(arco: Shell, command: str) -> None:
    assert arco("workspace", "create", "fresh").code == 0
    assert arco(command, "--warehouse", "default/fresh").code == 0


def test_the_notes_of_upkeep_are_no_catalog(arco: Shell, tmp_path: Path) -> None:
    """Whoever sent it to a misspelt root before finds it no better for that."""
    note = tmp_path / "other/default/default/_catalog/upkeep/clock.json"
    note.parent.mkdir(parents=True)
    note.write_bytes(b"{}")
    assert arco("upkeep", "--root", str(tmp_path / "other")).code == 2


def test_what_is_not_json_is_never_printed_as_json(arco: Shell) -> None:
    for command in (("ls",), ("ls", "--dropped"), ("show", "shop.events"), ("history", "shop.old"), ("verify", "--deep")):
        assert isinstance(arco(*command, "--json").json, dict)


# Help


def loaded_by(*modules: str) -> set[str]:
    code = f"import {', '.join(modules)}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_help_is_there_before_anything_heavy_is_loaded() -> None:
    loaded = loaded_by("arco.surface.cli.main")
    assert not loaded & {"msgspec", "pyarrow", "pyiceberg", "obstore", "uvicorn", "asyncio"}


@pytest.mark.parametrize("command", ["listing", "showing", "changing", "verifying", "doctor"])
def test_a_command_loads_arrow_and_pyiceberg_only_for_what_needs_them(command: str) -> None:
    loaded = loaded_by("arco.surface.cli.main", f"arco.surface.cli.{command}")
    assert {"typer", "arco"} <= loaded
    assert not loaded & {"pyarrow", "pyiceberg", "uvicorn"}


@pytest.mark.parametrize(
    "command",
    ["ls", "show", "history", "drop", "undrop", "rename", "verify", "assets", "lineage", "health", "diff", "search"],
)
def test_every_command_teaches_by_example(arco: Shell, command: str) -> None:
    ended = arco(command, "--help")
    assert ended.code == 0
    assert f"arco {command} " in ended.out
    for flag in ("--root", "--option", "--warehouse"):
        assert flag in ended.out
