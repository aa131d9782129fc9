"""`arco ls --dropped`: what can be restored, and what was let go."""

import pytest

from arco.catalog.model import Dropped, Entry, Format, Kind
from arco.surface.cli.listing import _show_dropped


def dropped(name: str, **more: bool) -> Dropped:
    entry = Entry(f"uuid of {name}", "asset", Kind.TABLE, Format.ICEBERG, ("shop",), name, "s3://b/t", 1, 0, 0)
    return Dropped(entry, f"drop of {name}", more.pop("purge", False), "ann", 0, **more)


def test_what_was_unregistered_is_told_from_what_can_be_restored(capsys: pytest.CaptureFixture[str]) -> None:
    _show_dropped([dropped("a"), dropped("b", purge=True), dropped("c", unregistered=True)], json=False)
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in shown if line.startswith("shop.")][1:] == ["purged", "unregistered"]
    assert "arco undrop" in shown[-2]
    assert "registering it again" in shown[-1]


def test_where_nothing_can_be_restored_nobody_is_told_how(capsys: pytest.CaptureFixture[str]) -> None:
    _show_dropped([dropped("c", unregistered=True)], json=False)
    assert "arco undrop" not in capsys.readouterr().out
