"""`arco diff`: what two words mean, what is listed where they are left out, and what is printed of the difference."""

import pytest

from arco.kernel.errors import InvalidInput
from arco.surface.cli.comparing import OfAsset, Snapshots, wanted

from .reading_ground import Lake, lake
from .shell import Shell, arco

__all__ = ["arco", "lake"]

DAY = ("--partition", "date=2025-03-05")
ID = "01JZ3V5Q0E8Y7M2K4T6B9N1D3F"


def test_what_words_mean() -> None:
    assert wanted([], None, versions=False, schemas=False) == Snapshots(())
    assert wanted([ID, "2025-01-31"], None, versions=False, schemas=False) == Snapshots((ID, "2025-01-31"))
    assert wanted(["a.b"], None, versions=True, schemas=False) == OfAsset("a.b", None, False)
    assert wanted(["a.b", "1", "2"], None, versions=False, schemas=True) == OfAsset("a.b", ("1", "2"), True)


@pytest.mark.parametrize(
    ("words", "flags", "says"),
    [
        (["a.b"], {}, "arco diff a.b --versions"),
        ([ID, ID, ID], {}, "arco diff A B"),
        (["a.b"], {"versions": True, "schemas": True}, "arco diff A B"),
        (["a.b", "1"], {"versions": True}, "arco diff NAME --versions lists them"),
        ([], {"schemas": True}, "arco diff NAME --schemas lists them"),
        ([ID], {"partition": "date=2025-01-31"}, "arco diff NAME --versions --partition KEY"),
        (["a.b"], {"partition": "date=2025-01-31", "schemas": True}, "leave --partition out"),
    ],
)
def test_words_that_mean_nothing_are_told_what_would(words: list[str], flags: dict[str, object], says: str) -> None:
    given = {"partition": None, "versions": False, "schemas": False} | flags
    with pytest.raises(InvalidInput) as refused:
        wanted(words, **given)  # type: ignore[arg-type]
    assert says in refused.value.hint


def test_without_words_snapshots_are_listed_newest_first(arco: Shell, lake: Lake) -> None:
    out = arco("diff", *lake.now).out.splitlines()
    assert [line.split()[0] for line in out[1:4]] == list(reversed(lake.snapshots))
    assert out[4].startswith(f"Next: arco diff {lake.snapshots[1]}")
    listed = arco("diff", *lake.now, "--json").json["snapshots"]
    assert [one["snapshot"] for one in listed] == list(reversed(lake.snapshots))


def test_two_snapshots_differ_by_what_came_between(arco: Shell, lake: Lake) -> None:
    document = arco("diff", *lake.snapshots[1:], *lake.now, "--json").json
    assert (document["before"], document["snapshot"]) == lake.snapshots[1:]
    lines = arco("diff", *lake.snapshots[1:], *lake.now).out.splitlines()
    for table in document["tables"]:
        (headline,) = [line for line in lines if line.startswith(f"{table['table'].replace('_', ' ')}  ")]
        assert f"{table['added']} new" in headline or not table["added"]
        assert f"{table['changed']} changed" in headline or not table["changed"]
    assert any(line.startswith("  + ") for line in lines)
    assert any(line.startswith("  ~ ") for line in lines)


def test_what_is_undone_is_gone_the_other_way_round(arco: Shell, lake: Lake) -> None:
    there = arco("diff", *lake.snapshots[1:], *lake.now, "--json").json
    back = arco("diff", *reversed(lake.snapshots[1:]), *lake.now, "--json").json
    assert [(one["table"], one["added"]) for one in there["tables"]] == [
        (one["table"], one["removed"]) for one in back["tables"]
    ]
    assert any(line.startswith("  - ") for line in arco("diff", *reversed(lake.snapshots[1:]), *lake.now).out.splitlines())


def test_one_snapshot_is_held_against_what_is_now(arco: Shell, lake: Lake) -> None:
    assert (
        arco("diff", lake.snapshots[0], *lake.now).out == arco("diff", lake.snapshots[0], lake.snapshots[2], *lake.now).out
    )
    assert "Nothing differs." in arco("diff", lake.snapshots[2], *lake.now).out
    assert arco("diff", lake.snapshots[2], *lake.now, "--fresh").code == 0


def test_a_snapshot_that_was_named_is_not_named_again(arco: Shell, lake: Lake) -> None:
    ended = arco("diff", *lake.snapshots[1:], *lake.now, "--fresh")
    assert ended.code == 2
    assert "two snapshots are named already" in ended.err


def test_a_long_list_is_cut_and_says_so(arco: Shell, lake: Lake) -> None:
    out = arco("diff", *lake.snapshots[1:], *lake.now, "--limit", "1").out
    assert "more: --limit" in out


def test_versions_are_listed_and_two_compared(arco: Shell, lake: Lake) -> None:
    listed = arco("diff", "shop.orders", "--versions", *DAY, *lake.at).out
    assert "Next: arco diff shop.orders --versions 4 5 --partition date=2025-03-05" in listed
    out = arco("diff", "shop.orders", "--versions", "1", "2", *DAY, *lake.at).out
    assert "version 1" in out
    assert [line.split() for line in out.splitlines() if line.startswith("rows")] == [["rows", "105", "111", "+6"]]
    assert "another snapshot" in out
    assert arco("diff", "shop.orders", "--versions", "1", "2", *DAY, *lake.at, "--json").json["rows"]["change"] == 6


def test_the_only_partition_needs_no_name_and_one_of_many_does(arco: Shell, lake: Lake) -> None:
    assert "current" in arco("diff", "shop.customers", "--versions", *lake.at).out
    ended = arco("diff", "shop.orders", "--versions", *lake.at)
    assert ended.code == 2
    assert "add --partition date=2025-03-01" in ended.err


def test_schemas_are_listed_and_two_compared(arco: Shell, lake: Lake) -> None:
    assert "Next: arco diff shop.orders --schemas 0 1" in arco("diff", "shop.orders", "--schemas", *lake.at).out
    out = arco("diff", "shop.orders", "--schemas", "0", "1", *lake.at).out
    assert ["total", "rename", "a", "column", "amount", "total"] in [line.split() for line in out.splitlines()]
    assert "4 changes, allowed under backward compatibility" in out
    back = arco("diff", "shop.orders", "--schemas", "1", "0", *lake.at).out
    assert "refused" in back
    assert "are the same" in arco("diff", "shop.orders", "--schemas", "1", "1", *lake.at).out
