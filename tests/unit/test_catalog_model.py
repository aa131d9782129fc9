"""The models that histories of the catalog are judged against: what they accept, and what they must not."""

import pytest

from arco_sim.catalog_model import CatalogModel, CatalogState
from arco_sim.linearizability import Operation, check
from arco_sim.models import Existence, Properties, Table

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
    "a view has a name of its own kind": [
        ("create view", ("v", "u2", "new"), "ok"),
        ("load view", "v", ("u2", "new")),
        ("load", "v", "missing"),
        ("list", None, ("a",)),
        ("list view", None, ("v",)),
        ("drop", "v", "missing"),
        ("rename view", ("v", "w"), "ok"),
        ("drop any", "w", "ok"),
        ("undrop", ("u2", "v"), "ok"),
        ("resolve view", ("v", "u2"), "ok"),
        ("resolve table", ("v", None), "ok"),
    ],
    "an owner goes with its table": [
        ("own", ("u1", "ann"), "ok"),
        ("rename any", ("a", "b"), "ok"),
        ("show", "b", ("u1", "ann")),
        ("show", "a", "missing"),
    ],
    "a staged table finds its name taken": [("stage", ("a", "u2", "new"), "conflict"), ("stage", ("b", "u2", "new"), "ok")],
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
    "a view where a table is": [("create view", ("a", "u2", "new"), "ok")],
    "a table that is answered as a view": [("load view", "a", ("u1", "first"))],
    "a table that is dropped as a view": [("drop view", "a", "ok")],
    "a table that is renamed as a view": [("rename view", ("a", "b"), "ok")],
    "an owner that was never told": [("show", "a", ("u1", "ann"))],
    "an owner that is lost by a rename": [
        ("own", ("u1", "ann"), "ok"),
        ("rename", ("a", "b"), "ok"),
        ("show", "b", ("u1", None)),
    ],
    "a description of what has no name": [("drop", "a", "ok"), ("own", ("u1", "ann"), "ok")],
    "a staged table over another": [("stage", ("a", "u2", "new"), "ok")],
    "a staged table that finds a free name taken": [("stage", ("b", "u2", "new"), "conflict")],
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


SET_P = ("change", ((), (("p", "1"),)), ((), ()))


@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        ([SET_P, ("change", (("p", "q"), ()), (("p",), ("q",))), ("read", None, ())], True),
        ([SET_P, ("change", (("p",), (("p", "2"),)), (("p",), ())), ("read", None, (("p", "2"),))], True),
        ([SET_P, ("change", (("p",), ()), ((), ("p",)))], False),
        ([("change", (("p",), ()), (("p",), ()))], False),
        ([SET_P, ("read", None, ())], False),
        ([("change", ((), (("p", "1"),)), ...), ("read", None, (("p", "1"),))], True),
        ([("change", ((), (("p", "1"),)), ...), ("read", None, ())], True),
    ],
)
def test_what_a_change_of_properties_may_answer(lines, fits) -> None:
    assert check(history(*lines), Properties()).linearizable is fits


def test_a_model_knows_its_own_operations_only() -> None:
    with pytest.raises(ValueError, match="knows no"):
        check(history(("explode", "a", "ok")), CatalogModel(FIRST))
    with pytest.raises(ValueError, match="knows no"):
        check(history(("explode", "a", "ok")), Table("first", 1))
