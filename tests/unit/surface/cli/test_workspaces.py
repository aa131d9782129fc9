"""`arco workspace`, `--workspace` and `--defer-to` as the shell calls them, where nothing needs Spark."""

from pathlib import Path

import pytest

from .shell import Shell, arco

__all__ = ["arco"]

ASSETS = """
from arco import asset

@asset
def orders(run): ...

@asset
def totals(orders): ...
"""
TOML = """
root = "lake"
[project]
name = "shop"
warehouse = "default/prod"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for word in ("ARCO_ROOT", "ARCO_WORKSPACE", "ARCO_DEFER_TO"):
        monkeypatch.delenv(word, raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(TOML)
    return tmp_path


def names(arco: Shell, *flags: str) -> list[str]:
    return [one["workspace"] for one in arco("workspace", "list", "--json", *flags).json]


def test_a_workspace_is_made_listed_given_up_and_taken_up_again(arco: Shell) -> None:
    assert arco("workspace", "create", "dev", "--description", "prices").code == 0
    assert arco("workspace", "create", "dev").code == 2, "it is there"
    (dev,) = arco("workspace", "list", "--json").json
    assert (dev["workspace"], dev["description"], dev["holds"]) == ("default/dev", "prices", 0)
    assert arco("workspace", "delete", "dev", "--why", "merged").code == 0
    assert (names(arco), names(arco, "--all")) == ([], ["default/dev"])
    refused = arco("deploy", "--workspace", "dev")
    assert refused.code == 2
    assert "was given up" in refused.err
    assert "merged" in refused.err
    assert arco("workspace", "create", "dev").code == 0
    assert arco("deploy", "--workspace", "dev").code == 0


def test_one_that_nobody_made_or_wrote_to_is_not_deleted(arco: Shell) -> None:
    ended = arco("workspace", "delete", "dve", "--why", "x")
    assert ended.code == 2
    assert "there is no workspace default/dve" in ended.err
    assert arco("workspace", "delete", "dev", "--why", " ").code == 2


def test_one_that_holds_tables_is_refused_unless_they_are_dropped(arco: Shell, here: Path) -> None:
    import asyncio  # noqa: PLC0415

    from arco.catalog.inventory import NewTable  # noqa: PLC0415
    from arco.catalog.manifest import Author  # noqa: PLC0415
    from arco.catalog.model import Format, Governance  # noqa: PLC0415
    from arco.catalog.namespaces import create_namespace  # noqa: PLC0415
    from arco.surface.cli.flags import Where  # noqa: PLC0415
    from arco.surface.cli.opening import opened  # noqa: PLC0415

    async def fill() -> None:
        async with opened(Where.of(str(here / "lake"), [], "default/dev")) as home:
            await create_namespace(home.catalog.parts, ("shop",), {}, home.key("create"), Author("ann", None))
            table = NewTable(("shop",), "old", Format.PARQUET, f"file://{here}/old", {}, (), Governance())
            await home.inventory.create(table, home.key("register"), Author("ann", None))

    asyncio.run(fill())
    refused = arco("workspace", "delete", "dev", "--why", "merged")
    assert refused.code == 2
    assert "holds 1 table" in refused.err
    assert arco("workspace", "delete", "dev", "--why", "merged", "--purge-tables").code == 2, "nobody is there to ask"
    assert arco("workspace", "delete", "dev", "--why", "merged", "--purge-tables", "--yes").code == 0
    assert names(arco) == []


def test_the_flag_wins_over_the_environment_and_that_over_the_file(arco: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    arco("deploy")
    monkeypatch.setenv("ARCO_WORKSPACE", "staging")
    arco("deploy")
    arco("deploy", "--workspace", "dev")
    arco("deploy", "--workspace", "team/dev")
    assert names(arco) == ["default/dev", "default/prod", "default/staging", "team/dev"]
    assert arco("deploy", "--workspace", "../x").code == 2


def test_deferring_to_oneself_is_refused_and_a_file_says_nothing_of_the_one_it_names(arco: Shell, here: Path) -> None:
    ended = arco("plan", "--defer-to", "prod")
    assert ended.code == 2
    assert "cannot be deferred to from itself" in ended.err
    (here / "arco.toml").write_text(TOML + 'defer_to = "prod"\n')
    assert arco("plan").code == 0, "prod has nobody to defer to"
    assert "This expands to 2 tasks" in arco("plan", "--workspace", "dev").out


def test_one_that_was_only_named_in_refused_requests_is_not_listed(arco: Shell, here: Path) -> None:
    """A key that was refused is remembered, so that its retry hears the same: that makes no workspace."""
    import asyncio  # noqa: PLC0415

    from arco.catalog.idempotency import RequestKey  # noqa: PLC0415
    from arco.iceberg.requests import parse_commit_transaction  # noqa: PLC0415
    from arco.kernel.errors import NoSuchTable  # noqa: PLC0415
    from arco.kernel.ids import new_uuid7  # noqa: PLC0415
    from arco.ledger.receipts import Source  # noqa: PLC0415
    from arco.surface.cli.flags import Where  # noqa: PLC0415
    from arco.surface.cli.opening import opened  # noqa: PLC0415
    from arco.txn.transactions import Transactions  # noqa: PLC0415

    changes = [{"identifier": {"namespace": ["db"], "name": "a"}, "requirements": [], "updates": []}]

    async def ask() -> None:
        async with opened(Where.of(str(here / "lake"), [], "default/misspelt")) as home:
            parts = home.catalog.parts
            key = RequestKey(new_uuid7(parts.clock, parts.entropy), "commitTransaction", "0")
            with pytest.raises(NoSuchTable):
                await Transactions(home.catalog).commit(parse_commit_transaction({"table-changes": changes}), key, Source())

    arco("workspace", "create", "dev")
    asyncio.run(ask())
    assert list((here / "lake").rglob("iceberg_transactions"))
    assert names(arco, "--all") == ["default/dev"]


def test_deferring_to_a_name_that_is_misspelt_is_refused_before_anything_is_planned(
    arco: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    arco("deploy")
    assert arco("plan", "--workspace", "dev", "--defer-to", "prod").code == 0
    for words in (("plan",), ("run", "--detach")):
        ended = arco(*words, "--workspace", "dev", "--defer-to", "prdo")
        assert ended.code == 2
        assert "there is no workspace default/prdo" in ended.err
    monkeypatch.setenv("ARCO_DEFER_TO", "prdo")
    assert arco("plan", "--workspace", "dev").code == 2
