"""`arco quarantine` as the shell calls it, on outputs that were held back."""

from pathlib import Path

import pytest

from arco.surface.cli.quarantining import in_words
from fixtures.servo.lake import Lake, data_file
from unit.servo.execute.test_desk import BY_DAY, SCHEMA, held

from .shell import Shell, arco

__all__ = ["arco"]


@pytest.fixture
def ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two outputs that were held back, and rows that were set aside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCO_ROOT", str(tmp_path / "lake"))
    with Lake(tmp_path / "lake") as lake:
        base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
        found = [held(lake, base, f"file{day}", day).id for day in (1, 2)]
        aside = lake.create("t__quarantine", SCHEMA)
        facts = {"arco.asset": "db.t", "arco.asset-id": "a"}
        lake.publish("t__quarantine", aside, (data_file(aside, "rows.parquet", rows=3),), facts=facts)
    return found


def test_what_is_held_is_listed_shown_and_settled_once(arco: Shell, ids: list[str]) -> None:
    listed = arco("quarantine", "list", "--json").json
    assert [one["id"] for one in listed[:2]] == ids
    assert (listed[2]["what"], listed[2]["rows"], listed[2]["asset"]) == ("rows", 3, "db.t")
    shown = arco("quarantine", "show", ids[0])
    assert "unique(n)" in arco("quarantine", "list").out
    assert f"arco quarantine release {ids[0]} --why …" in shown.out
    released = arco("quarantine", "release", ids[0], "--why", "it is right", "--json").json
    assert released["verdict"] == "release"
    assert arco("quarantine", "release", ids[0], "--why", "again", "--json").json == released
    assert "discarded by" in arco("quarantine", "discard", ids[1][-6:], "--why", "broken").out
    assert "discarded by" in arco("quarantine", "discard", listed[2]["id"], "--why", "seen").out
    assert arco("quarantine", "list").out == "nothing is held back any more: arco quarantine list --all\n"
    every = arco("quarantine", "list", "--all", "--json").json
    assert [one["settled"]["verdict"] for one in every] == ["released", "discarded", "discarded"]
    assert [one["settled"]["why"] for one in every] == ["it is right", "broken", "seen"]


def test_what_cannot_be_done_is_said_in_one_line(arco: Shell, ids: list[str]) -> None:
    rows = arco("quarantine", "list", "--json").json[2]["id"]
    refused = arco("quarantine", "release", rows, "--why", "x")
    assert refused.code == 2
    assert "what these rows were set aside from is not published" in refused.err
    assert "nothing that was held back is called 'nope'" in arco("quarantine", "show", "nope").err
    assert "is the end of several" in arco("quarantine", "show", "").err
    assert arco("quarantine", "discard", ids[0], "--why", " ").code == 2


def test_partitions_are_said_in_words() -> None:
    assert in_words({"date": ["2025-01-01", "2025-01-03"], "region": [["de", "fr"]]}) == (
        "date from 2025-01-01 to before 2025-01-03, region de, fr"
    )


@pytest.mark.parametrize("chars", [0, 1, 3])
def test_nothing_is_given_up_by_an_id_that_was_left_empty(
    arco: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chars: int
) -> None:
    """As a shell writes a variable that is not set."""
    monkeypatch.setenv("ARCO_ROOT", str(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)
    with Lake(tmp_path / "lake") as lake:
        only = held(lake, lake.create("t", SCHEMA, partition_spec=BY_DAY), "file1", 1).id
    refused = arco("quarantine", "discard", only[len(only) - chars :], "--why", "x")
    assert refused.code == 2
    assert "is too short for an id" in refused.err
    assert arco("quarantine", "list", "--json").json[0]["id"] == only
    assert arco("quarantine", "discard", only[-4:], "--why", "x").code == 0


def test_a_root_without_anything(arco: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert arco("quarantine", "list", "--root", str(tmp_path / "empty")).out == "nothing is held back\n"
