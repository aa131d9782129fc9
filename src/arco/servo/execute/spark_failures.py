"""Spark's exceptions taken apart: condition, SQL state, the causes inside the JVM, and the line of the user's code."""

import re

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PythonException

from arco.ledger import run_entries
from arco.servo.execute.failures import ErrorFacts, Failure, causes, classify, facts_of, is_theirs, user_line

_CANCELLED = ("SPARK_JOB_CANCELLED", "OPERATION_CANCELED", "INTERRUPTED")
_CANCELLED_TEXT = re.compile(r"\bJob \d+ cancelled\b|cancelled part of cancelled job (group|tag)|SPARK_JOB_CANCELLED")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z][A-Z0-9_]+)?)\]")
_SQL_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
_JAVA_CAUSE = re.compile(r"(?:Caused by: )?((?:[a-z]\w*\.)+)([A-Z]\w*(?:Exception|Error|Failure))\b")
_PYTHON_CAUSE = re.compile(r"^(?:\w+\.)*([A-Z]\w*(?:Error|Exception|Warning|Interrupt))(?::|$)", re.MULTILINE)
_PYTHON_LINE = re.compile(r'^  File "([^"]+)", line (\d+)', re.MULTILINE)


def failure_of(error: BaseException) -> Failure:
    """Any exception of a task, classified."""
    return classify(spark_facts(error))


def said_of(error: BaseException) -> run_entries.Failure:
    """The same as the log of a run keeps it."""
    found = failure_of(error)
    at = f"{found.where}: " if found.where and found.where not in found.message else ""
    hints = [f"{hint.action}: {hint.command}" if hint.command else hint.action for hint in found.hints]
    return run_entries.Failure(
        kind=found.category.value,
        message=f"{at}{found.message}",
        transient=found.transient,
        hint="; ".join(hints),
        severity=found.severity.value,
    )


def is_cancelled(error: BaseException) -> bool:
    """Whether the task was told to stop: that is no failure."""
    for one in causes(error):
        if isinstance(one, PySparkException) and str(_said(one)[0]).startswith(_CANCELLED):
            return True
        if isinstance(one, (PySparkException, Py4JJavaError)) and _CANCELLED_TEXT.search(str(one)):
            return True
    return False


def spark_facts(error: BaseException) -> ErrorFacts:
    """The facts of an exception; of Spark's, if there is one among its causes."""
    chain = causes(error)
    found = next((one for one in chain if isinstance(one, (PySparkException, Py4JError))), None)
    plain = facts_of(error)
    if found is None or plain.code is not None:
        return plain
    if isinstance(found, Py4JNetworkError):
        return ErrorFacts(("OutOfMemoryError",), f"the Spark driver is gone: {found}", where=plain.where)
    text = str(found)
    condition, state = _said(found)
    names = tuple(match[2] for match in _JAVA_CAUSE.finditer(text)) + tuple(_PYTHON_CAUSE.findall(text))
    where = _worker_line(text) if isinstance(found, PythonException) else None
    return ErrorFacts(names, _first_words(text), condition, state, where or user_line(chain))


def _said(error: BaseException) -> tuple[str | None, str | None]:
    """Spark's condition and SQL state. What fails while a job runs comes as Java's exception, which has them in its text."""
    if isinstance(error, PySparkException):
        return error.getCondition(), error.getSqlState()
    condition, state = _CONDITION.search(str(error)), _SQL_STATE.search(str(error))
    return condition[1] if condition else None, state[1] if state else None


def _first_words(text: str) -> str:
    """Spark's message without the plan and the stack below it; all of it where that leaves nothing."""
    head = (
        re.split(r"\n\s*(?:'\w|'?\w+ \[|\+-|at |JVM stacktrace|Traceback|== SQL)", text, maxsplit=1)[0].strip().rstrip(";")
    )
    tail = _PYTHON_CAUSE.findall(text)
    if "Traceback" in text and tail:
        lines = [line for line in text.splitlines() if re.match(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b", line)]
        return f"{head} {lines[-1]}" if lines else head
    return head or text


def _worker_line(text: str) -> str | None:
    """The innermost line of the user's code in a trace from a Python worker."""
    for path, line in reversed(_PYTHON_LINE.findall(text)):
        if is_theirs(path):
            return f"{path}:{line}"
    return None
