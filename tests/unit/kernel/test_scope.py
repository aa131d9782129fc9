"""Scopes: strict names, and two spellings that read back as themselves."""

from dataclasses import FrozenInstanceError

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.scope import Scope, TenantName, WorkspaceName

GOOD_NAMES = ("a", "0", "default", "acme-eu", "team_7", "0a-_b1", "a" * 63, "a--b", "a__b")
BAD_NAMES = (
    "", "-a", "a-", "_a", "a_", "A", "Acme", "a b", "a.b", "a/b", ".", "..", "a\n", "\na", "a\0", "ä", "а", "a" * 64, "*", "a%2f",
    "a\\b", "~", "_", "-", "a:b", "a@b", "a+b", "\u0661", "\ud800", ".arco",
)  # fmt: skip


@pytest.mark.parametrize("kind", [TenantName, WorkspaceName])
def test_a_name_of_a_scope_is_strict(kind):
    for name in GOOD_NAMES:
        assert kind(name) == name
    for name in BAD_NAMES:
        with pytest.raises(InvalidInput, match=kind.what):
            kind(name)


def test_without_names_the_scope_is_the_default_one():
    assert Scope.of() == Scope.of("default", "default")
    assert Scope.of("acme").warehouse == "acme/default"


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_both_spellings_of_a_scope_read_back(name):
    for scope in (Scope.of(name, "prod"), Scope.of("prod", name)):
        assert Scope.parse_warehouse(scope.warehouse) == scope
        assert Scope.parse_prefix(scope.prefix) == scope


@pytest.mark.parametrize(
    "text", ["", "a", "a/", "/a", "/", "a/b/c", "a//b", "a.b", "a/../b", "A/b", "a/b\n", "a /b", "a/b."]
)
def test_a_warehouse_is_a_tenant_and_a_workspace_and_nothing_else(text):
    with pytest.raises(InvalidInput):
        Scope.parse_warehouse(text)


@pytest.mark.parametrize("text", ["", "a", "a.", ".a", ".", "..", "a.b.c", "a..b", "a/b", "A.b", "a.b\n", "a%2eb"])
def test_a_prefix_is_a_tenant_and_a_workspace_and_nothing_else(text):
    with pytest.raises(InvalidInput):
        Scope.parse_prefix(text)


def test_scopes_are_compared_and_sorted_by_tenant_then_workspace():
    scopes = [Scope.of("b", "a"), Scope.of("a", "b"), Scope.of("a", "a")]
    assert [scope.warehouse for scope in sorted(scopes)] == ["a/a", "a/b", "b/a"]
    assert len({*scopes, Scope.of("a", "a")}) == 3


def test_a_scope_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Scope.of().tenant = TenantName("other")
