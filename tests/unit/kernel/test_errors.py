"""Errors: few, with stable codes, grouped by what the caller does, and never more than one line."""

import re

import pytest

from arco.kernel import errors
from arco.kernel.errors import ERROR_TABLE, Action, ArcoError, ErrorRow

# Codes are stable: clients match on them. New ones are added here, none is ever taken away.
PUBLISHED_CODES = {
    "internal", "fix_request", "invalid_input", "too_large", "not_found", "already_exists", "key_reused", "access_denied",
    "refresh", "conflict", "fenced", "retry_later", "throttled", "unavailable", "ask_history", "outcome_unknown",
    "ask_operator", "corrupt_object", "unknown_format", "store_unsuitable", "broken_invariant",
}  # fmt: skip
GROUPS = {
    "FixRequest": (Action.FIX, range(400, 500)),
    "Refresh": (Action.REFRESH, range(409, 410)),
    "RetryLater": (Action.RETRY, range(503, 504)),
    "AskHistory": (Action.ASK_HISTORY, range(504, 505)),
    "AskOperator": (Action.OPERATOR, range(500, 501)),
}
BREAKS = ("\n", "\r\n", "\r", "\t", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def tree(cls: type[ArcoError]) -> dict[str, str]:
    """Every class below one, with its parent, in the order of definition; only the product's own."""
    below: dict[str, str] = {}
    for sub in cls.__subclasses__():
        if sub.__module__.partition(".")[0] == "arco":
            below |= {sub.__name__: cls.__name__} | tree(sub)
    return below


def classes(cls: type[ArcoError] = ArcoError) -> list[type[ArcoError]]:
    found = [cls]
    for sub in cls.__subclasses__():
        if sub.__module__.partition(".")[0] == "arco":
            found += classes(sub)
    return found


def drawn_tree() -> dict[str, str]:
    """The tree as the module's first lines draw it."""
    drawn: dict[str, str] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}([│├└─ ]*)([A-Z]\w+)", line)
        if found is None:
            continue
        depth, name = len(found[1]) // 4, found[2]
        above[depth] = name
        if depth:
            drawn[name] = above[depth - 1]
    return drawn


def test_the_tree_that_is_drawn_is_the_tree_that_is_built():
    assert drawn_tree() == tree(ArcoError)
    assert list(drawn_tree()) == list(tree(ArcoError))


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_every_error_has_its_line_in_the_table(cls):
    assert ERROR_TABLE[cls.code] == ErrorRow(cls.code, cls.status, cls.action, cls.default_hint)


def test_no_two_errors_share_a_code():
    assert len({cls.code for cls in classes()}) == len(classes()) == len(ERROR_TABLE)


def test_no_published_code_was_taken_away():
    assert set(ERROR_TABLE) >= PUBLISHED_CODES


@pytest.mark.parametrize("code", ERROR_TABLE)
def test_a_code_is_one_lower_case_word(code):
    assert re.fullmatch(r"[a-z]+(?:_[a-z]+)*", code)
    assert ERROR_TABLE[code].code == code


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_what_the_caller_does_and_its_status_says_the_same(group):
    action, statuses = GROUPS[group]
    for cls in classes(getattr(errors, group)):
        assert cls.action is action
        assert cls.status in statuses, cls


def test_the_groups_are_all_there_is_below_the_base():
    assert [name for name, parent in tree(ArcoError).items() if parent == "ArcoError"] == list(GROUPS)


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_every_error_is_one_line_with_the_way_out(cls):
    assert cls.default_hint
    for breaking in BREAKS:
        line = cls(f"first{breaking}second", hint=f"do{breaking}this").one_line()
        assert line == "first second: do this"
        assert len(line.splitlines()) == 1


def test_an_error_takes_the_hint_of_its_class_unless_it_is_given_one():
    assert errors.NotFound("no table").one_line() == "no table: check the name"
    assert errors.NotFound("no table", hint="run arco ls").one_line() == "no table: run arco ls"
    assert errors.NotFound("no table", hint="").one_line() == "no table"


def test_an_error_is_its_message():
    error = errors.Conflict("the table moved")
    assert (str(error), error.message, error.args) == ("the table moved", "the table moved", ("the table moved",))
