"""The models that histories of the catalog are judged against: what they accept, and what they must not."""

import pytest

from arco_sim.catalog_model import CatalogModel, CatalogState
from arco_sim.linearizability import Operation, check
from arco_sim.models import Existence, Table

FIRST = CatalogState(frozenset({("a", "u1")}), frozenset(), frozenset({("u1", "first")}))


def history(*lines):
    """One after the other, each `(name, argument, result)`; `...` as the result of one that never returned."""
    operations = []
    for number, (name, argument, result) in enumerate(lines):
        returned = None if result is ... else 2 * number + 1
        operations.append(Operation("client", "k", name, argument, None if result is ... else result, 2 * number, returned))
    return operations


GOOD = {
    "a name means its table and what it holds": [("load", "a", ("u1", "first"))],
    "a commit shows": [("resolve", ("a", "u1"), "ok"), ("write", ("u1", "x"), "ok"), ("load", "a", ("u1", "x"))],
    "a table keeps what it holds under another name": [
        ("rename", ("a", "b"), "ok"),
        ("load", "b", ("u1", "first")),
        ("load", "a", "missing"),
        ("list", None, ("b",)),
    ],
    "what was dropped can be restored once": [
        ("drop", "a", "ok"),
        ("undrop", ("u1", "c"), "ok"),
        ("undrop", ("u1", "a"), "gone"),
        ("load", "c", ("u1", "first")),
    ],
    "a free name can be taken": [("drop", "a", "ok"), ("create", ("a", "u2", "new"), "ok"), ("load", "a", ("u2", "new"))],
    "a registered table holds what its file says": [
        ("write", ("u1", "x"), "ok"),
        ("drop", "a", "ok"),
        ("register", ("b", "u1", "first"), "ok"),
        ("load", "b", ("u1", "first")),
    ],
    "a replaced table can be restored": [
        ("create", ("b", "u2", "new"), "ok"),
        ("drop", "b", "ok"),
        ("overwrite", ("a", "u2", "new"), "ok"),
        ("load", "a", ("u2", "new")),
        ("undrop", ("u1", "b"), "ok"),
    ],
    "what never returned may have happened": [("drop", "a", ...), ("load", "a", "missing")],
    "what never returned may not have happened": [("drop", "a", ...), ("load", "a", ("u1", "first"))],
}

BAD = {
    "an acknowledged drop that did not happen": [("drop", "a", "ok"), ("load", "a", ("u1", "first"))],
    "an acknowledged restore that was destroyed": [
        ("drop", "a", "ok"),
        ("undrop", ("u1", "a"), "ok"),
        ("load", "a", "missing"),
    ],
    "a commit that followed its table to another name": [("rename", ("a", "b"), "ok"), ("resolve", ("a", "u1"), "ok")],
    "a load of an old name that shows a commit to the new one": [
        ("rename", ("a", "b"), "ok"),
        ("write", ("u1", "late"), "ok"),
        ("load", "a", ("u1", "late")),
    ],
    "a refusal that was never right": [("rename", ("a", "b"), "missing")],
    "two tables under one name": [("create", ("a", "u2", "new"), "ok")],
    "a write to a table that has no name": [("drop", "a", "ok"), ("write", ("u1", "x"), "ok")],
    "a list that forgets": [("list", None, ())],
}


@pytest.mark.parametrize("lines", GOOD.values(), ids=GOOD.keys())
def test_what_a_catalog_may_answer(lines) -> None:
    assert check(history(*lines), CatalogModel(FIRST)).linearizable


@pytest.mark.parametrize("lines", BAD.values(), ids=BAD.keys())
def test_what_a_catalog_must_not_answer(lines) -> None:
    assert not check(history(*lines), CatalogModel(FIRST)).linearizable


@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        ([("read", None, "first"), ("set", "x", "ok"), ("read", None, "x")], True),
        ([("set", "x", "ok"), ("read", None, "first")], False),
        ([("column", (1, "x"), "ok"), ("column", (1, "y"), "refused"), ("read", None, "x")], True),
        ([("column", (1, "x"), "refused")], False),
        ([("column", (1, "x"), "ok"), ("column", (1, "y"), "ok")], False),
        ([("column", (1, "x"), ...), ("column", (2, "y"), "ok")], True),
    ],
)
def test_what_a_table_may_answer(lines, fits) -> None:
    assert check(history(*lines), Table("first", 1)).linearizable is fits


@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        ([("space", "x", "ok"), ("space", "x", "exists"), ("unspace", "x", "ok"), ("unspace", "x", "missing")], True),
        ([("space", "x", "exists")], False),
        ([("space", "x", "ok"), ("unspace", "x", "missing")], False),
        ([("space", "x", ...), ("unspace", "x", "ok")], True),
    ],
)
def test_what_a_namespace_may_answer(lines, fits) -> None:
    assert check(history(*lines), Existence()).linearizable is fits


def test_a_model_knows_its_own_operations_only() -> None:
    with pytest.raises(ValueError, match="knows no"):
        check(history(("explode", "a", "ok")), CatalogModel(FIRST))
    with pytest.raises(ValueError, match="knows no"):
        check(history(("explode", "a", "ok")), Table("first", 1))
