"""Failures: every kind in its category, with what to do about it."""

import pytest
from typer.main import get_command

from arco.kernel.errors import (
    ERROR_TABLE,
    ArcoError,
    Conflict,
    Fenced,
    InvalidMetadata,
    NoSuchTable,
    Throttled,
    Unavailable,
)
from arco.ledger.failure_kinds import Category
from arco.servo.execute.failures import RULES, ErrorFacts, Severity, causes, classify, facts_of
from arco.surface.cli.main import app


def category(error: BaseException) -> Category:
    return classify(facts_of(error)).category


@pytest.mark.parametrize(
    ("error", "expected", "transient"),
    [
        (Fenced("x"), Category.LOST_LEASE, True),
        (Conflict("x"), Category.UPSTREAM, True),
        (Throttled("x"), Category.RATE_LIMITED, True),
        (Unavailable("x"), Category.STORAGE, True),
        (NoSuchTable("x"), Category.MISSING_DEPENDENCY, False),
        (InvalidMetadata("x"), Category.SCHEMA_VIOLATION, False),
        (MemoryError(), Category.RESOURCE_EXHAUSTED, True),
        (TimeoutError("x"), Category.TIMEOUT, True),
        (FileNotFoundError("x"), Category.MISSING_DEPENDENCY, False),
        (PermissionError("x"), Category.CONFIGURATION, False),
        (PermissionError("ExpiredToken (Status Code: 400): the keys of a task ended"), Category.STORAGE, True),
        (ModuleNotFoundError("No module named 'x'"), Category.CONFIGURATION, False),
        (ConnectionRefusedError("x"), Category.UPSTREAM, True),
        (OSError("No space left on device"), Category.RESOURCE_EXHAUSTED, False),
        (OSError("x"), Category.STORAGE, True),
        (KeyError("x"), Category.TRANSFORM, False),
        (ZeroDivisionError("x"), Category.TRANSFORM, False),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else str(one),
)
def test_an_exception_has_one_category(error, expected, transient):
    failure = classify(facts_of(error))
    assert (failure.category, failure.transient) == (expected, transient)


@pytest.mark.parametrize(
    ("condition", "state", "expected"),
    [
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", Category.SCHEMA_VIOLATION),
        ("TABLE_OR_VIEW_NOT_FOUND", "42P01", Category.MISSING_DEPENDENCY),
        ("PATH_NOT_FOUND", "42K03", Category.MISSING_DEPENDENCY),
        ("DIVIDE_BY_ZERO", "22012", Category.TRANSFORM),
        ("CAST_INVALID_INPUT", "22018", Category.TRANSFORM),
        ("PARSE_SYNTAX_ERROR", "42601", Category.TRANSFORM),
        ("UNABLE_TO_ACQUIRE_MEMORY", "53200", Category.RESOURCE_EXHAUSTED),
        ("DATA_SOURCE_NOT_FOUND", "42K02", Category.CONFIGURATION),
        ("FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH", "KD001", Category.SCHEMA_VIOLATION),
        ("FAILED_READ_FILE.NO_HINT", "KD001", Category.STORAGE),
        (None, None, Category.TRANSFORM),
    ],
    ids=str,
)
def test_sparks_conditions_and_states_decide(condition, state, expected):
    assert classify(ErrorFacts(("SparkException",), "x", condition, state)).category == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", Category.RESOURCE_EXHAUSTED),
        ("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)", Category.RESOURCE_EXHAUSTED),
        ("Service: S3, Status Code: 503, SlowDown: Please reduce your request rate", Category.RATE_LIMITED),
        ("AccessDenied (Service: S3, Status Code: 403)", Category.CONFIGURATION),
        ('No FileSystem for scheme "s3"', Category.CONFIGURATION),
        ("Could not execute broadcast in 300 secs", Category.TIMEOUT),
        ("java.net.ConnectException: Connection refused", Category.UPSTREAM),
        ("java.io.IOException: Stream closed", Category.STORAGE),
    ],
)
def test_texts_decide_where_there_is_nothing_better(text, expected):
    assert classify(ErrorFacts(("Py4JJavaError",), text)).category == expected


def test_there_are_the_ten_categories_and_the_lost_lease():
    assert len(Category) == 11
    assert {rule.category for rule in RULES} | {Category.DATA_QUALITY} == set(Category)


def test_every_failure_says_what_to_do():
    assert all(rule.hints and all(hint.action for hint in rule.hints) for rule in RULES)


@pytest.mark.parametrize("command", sorted({hint.command for rule in RULES for hint in rule.hints if hint.command}))
def test_what_is_to_be_typed_can_be_typed(command):
    arco, *words = command.split()
    if arco != "arco":
        assert command.startswith("pip install")
        return
    group = get_command(app)
    with group.make_context("arco", words) as context:
        name, found, rest = group.resolve_command(context, words)
        assert found.make_context(name, rest, parent=context).params


def test_every_error_of_ours_has_a_row_of_its_own():
    groups = {"internal", "fix_request", "ask_operator", "namespace_not_empty"}
    known = {code for rule in RULES for code in rule.codes}
    assert set(ERROR_TABLE) - known - groups == set()


def test_our_own_hint_comes_first():
    failure = classify(facts_of(Unavailable("the store is silent", hint="plug it in")))
    assert (failure.hints[0].action, failure.message) == ("plug it in", "the store is silent")


def test_the_cause_decides_and_not_what_was_wrapped_around_it():
    def work() -> None:
        try:
            raise Throttled("slower")
        except ArcoError as error:
            raise RuntimeError("the task failed") from error

    with pytest.raises(RuntimeError) as caught:
        work()
    assert category(caught.value) == Category.RATE_LIMITED
    assert [type(one) for one in causes(caught.value)] == [RuntimeError, Throttled]


@pytest.mark.parametrize("folder", ["shop", "arco", "arco/src"])
def test_the_line_of_the_users_code_is_named(tmp_path, folder):
    project = tmp_path / folder / "assets.py"
    project.parent.mkdir(parents=True)
    project.write_text("def orders():\n    x = 1\n    return x / 0\n")
    space: dict = {}
    exec(compile(project.read_text(), str(project), "exec"), space)
    with pytest.raises(ZeroDivisionError) as caught:
        space["orders"]()
    assert classify(facts_of(caught.value)).where == f"{project}:3"


def test_a_failure_is_one_line_of_bounded_length():
    failure = classify(ErrorFacts((), "a\nb\n" * 1000))
    assert "\n" not in failure.message
    assert len(failure.message) < 600
    assert failure.severity is Severity.ERROR
