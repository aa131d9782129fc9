"""What a failure is, for people and for the scheduler: its category, whether it may pass by itself, and what to do next.

One table, read from top to bottom: the first row that fits decides. It is made of Spark's own error conditions and SQL states
where there are any, of our own errors, of Python's, and of a few texts where there is nothing better. What must never enter:
Spark (`spark_failures.py` takes its exceptions apart).
"""

import os
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from arco.kernel.errors import ArcoError
from arco.kernel.ids import clip
from arco.ledger.failure_kinds import Category


class Severity(StrEnum):
    WARNING = "warning"  # it is expected to pass
    ERROR = "error"
    CRITICAL = "critical"  # more than this task is wrong


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do, and what to type where that is enough."""

    action: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, classified. `where` is the line of the user's own code that it came from."""

    category: Category
    severity: Severity
    transient: bool
    message: str
    hints: tuple[Hint, ...]
    condition: str | None = None
    sql_state: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What an exception says of itself: the names of its classes and of its causes, its text, and Spark's own words for it."""

    names: tuple[str, ...]
    text: str
    condition: str | None = None
    sql_state: str | None = None
    where: str | None = None
    code: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One row. It fits if any of its words fits; conditions and SQL states by their beginning, texts as patterns."""

    category: Category
    transient: bool
    hints: tuple[Hint, ...]
    codes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    sql_states: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR

    def fits(self, facts: ErrorFacts) -> bool:
        return (
            facts.code in self.codes
            or any(name in facts.names for name in self.names)
            or (facts.condition or "").startswith(self.conditions or ("\0",))
            or (facts.sql_state or "").startswith(self.sql_states or ("\0",))
            or any(re.search(text, facts.text, re.IGNORECASE) for text in self.texts)
        )


_MEMORY = Hint(
    'give Spark more memory ("spark.driver.memory" under [spark] in arco.toml), or set partitions_per_task lower'
)
_AGAIN = Hint("it may pass: run it again", "arco run")
_STORE = Hint("see whether the store can be reached and trusted", "arco doctor")

RULES: tuple[Rule, ...] = (
    Rule(
        Category.LOST_LEASE,
        True,
        (Hint("another worker took this task over; look at what it does", "arco runs"),),
        codes=("fenced", "given_up"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.UPSTREAM,
        True,
        (Hint("others changed the same partitions meanwhile: run the task on what is there now", "arco run"),),
        codes=("partitions_touched", "conflict", "refresh"),
        severity=Severity.WARNING,
    ),
    Rule(Category.RATE_LIMITED, True, (_AGAIN,), codes=("throttled", "busy"), severity=Severity.WARNING),
    Rule(
        Category.RATE_LIMITED,
        True,
        (Hint("run fewer tasks at once", "arco run --parallel 1"), _AGAIN),
        texts=(r"\bSlowDown\b", r"\bTooManyRequests", r"status code:? ?(429|503)\b", r"reduce your request rate"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.STORAGE,
        True,
        (_AGAIN, _STORE),
        codes=("unavailable", "retry_later", "outcome_unknown", "ask_history"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.STORAGE,
        False,
        (Hint("an object is damaged; see which", "arco verify"),),
        codes=("corrupt_object", "broken_invariant", "store_unsuitable", "store_refused"),
        severity=Severity.CRITICAL,
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("upgrade Arco: this was written by a newer version"),),
        codes=("unknown_format",),
        severity=Severity.CRITICAL,
    ),
    Rule(
        Category.RESOURCE_EXHAUSTED,
        False,
        (Hint("make room on the disk that spark.local.dir and the lake are on"),),
        texts=(r"No space left on device", r"Disk quota exceeded"),
        severity=Severity.CRITICAL,
    ),
    Rule(
        Category.RESOURCE_EXHAUSTED,
        True,
        (_MEMORY,),
        names=("MemoryError", "OutOfMemoryError"),
        conditions=("UNABLE_TO_ACQUIRE_MEMORY", "EXCEED_LIMIT_LENGTH", "KRYO_BUFFER_OVERFLOW", "LOCATION_OUT_OF_MEMORY"),
        sql_states=("53",),
        texts=(
            r"OutOfMemoryError",
            r"GC overhead limit",
            r"exit(ed with)? code 137",
            r"Container killed",
            r"ExecutorLostFailure",
        ),
    ),
    Rule(Category.RESOURCE_EXHAUSTED, False, (Hint("send less at once"),), codes=("too_large",)),
    Rule(
        Category.TIMEOUT,
        True,
        (Hint("let a task cover fewer partitions: set partitions_per_task lower"), _AGAIN),
        names=("TimeoutError", "TimeoutException", "SocketTimeoutException"),
        conditions=("BROADCAST_TIMEOUT", "FAILED_EXECUTE_BROADCAST"),
        texts=(r"Futures timed out", r"Could not execute broadcast in \d+ secs", r"heartbeats? .*timed out"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("Spark lacks the connector for this kind of store: name a folder with its jars under [spark] in arco.toml"),),
        texts=(r"No FileSystem for scheme", r"UnsupportedFileSystemException", r"ClassNotFoundException: .*hadoop\.fs"),
    ),
    Rule(
        Category.STORAGE,
        True,
        (
            Hint(
                "the keys ended before the task did; another attempt gets new ones where a worker makes them (vend_duration)"
            ),
        ),
        texts=(r"\bExpiredToken", r"security token .{0,40}is expired", r"token has expired"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("check the credentials and what they may do", "arco doctor"),),
        codes=("access_denied",),
        names=("PermissionError", "AccessDeniedException"),
        texts=(r"\bAccessDenied\b", r"InvalidAccessKeyId", r"SignatureDoesNotMatch", r"status code:? ?40[13]\b"),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint('let executors run the Python that runs here: "spark.pyspark.python" in arco.toml, under [spark] conf'),),
        conditions=("PYTHON_VERSION_MISMATCH",),
        texts=(r"\bPYTHON_VERSION_MISMATCH\b", r'Cannot run program "[^"]*python'),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("a jar is for another Spark or Scala: take builds for this one; arco spark jars fetches Iceberg's"),),
        texts=(
            r"NoClassDefFoundError: scala/",
            r"\b(NoSuchMethodError|AbstractMethodError|IncompatibleClassChangeError)\b",
        ),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (
            Hint(
                "Spark Connect has no RDD and no JVM: write it with DataFrames, or run it elsewhere",
                "arco run --spark local[*]",
            ),
        ),
        conditions=("JVM_ATTRIBUTE_NOT_SUPPORTED", "ATTRIBUTE_NOT_SUPPORTED_IN_CONNECT"),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("install the package that the code imports, on a cluster for every executor's Python", "pip install …"),),
        names=("ModuleNotFoundError", "ImportError", "PySparkImportError"),
        texts=(r"ModuleNotFoundError: No module named",),
    ),
    Rule(
        Category.MISSING_DEPENDENCY,
        False,
        (Hint("what it reads is not there: see what the plan expects", "arco plan --why"),),
        codes=("not_found", "no_such_table", "no_such_namespace", "no_such_view", "beyond_reach", "pending_ingestion"),
        names=("FileNotFoundError",),
        conditions=(
            "TABLE_OR_VIEW_NOT_FOUND",
            "PATH_NOT_FOUND",
            "SCHEMA_NOT_FOUND",
            "VIEW_NOT_FOUND",
            "FAILED_READ_FILE.FILE_NOT_EXIST",
        ),
        sql_states=("42P01", "42K03"),
        texts=(r"java\.io\.FileNotFoundException",),
    ),
    Rule(
        Category.SCHEMA_VIOLATION,
        False,
        (Hint("compare the code with the schemas of its inputs and its table", "arco plan --why"),),
        codes=("invalid_metadata",),
        conditions=(
            "UNRESOLVED_COLUMN",
            "UNRESOLVED_FIELD",
            "FIELD_NOT_FOUND",
            "COLUMN_NOT_FOUND",
            "INCOMPATIBLE_",
            "INVALID_COLUMN_OR_FIELD_DATA_TYPE",
            "NULLABLE_COLUMN_OR_FIELD",
            "NUM_COLUMNS_MISMATCH",
            "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            "UNION_NOT_COMPATIBLE",
        ),
        sql_states=("42703", "42704", "42826"),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("start it with the code that counts, or go back to this code on purpose", "arco deploy"),),
        codes=("superseded",),
    ),
    Rule(
        Category.CONFIGURATION,
        False,
        (Hint("check the project's settings", "arco validate"),),
        codes=("invalid_input", "invalid_items", "fix_request", "already_exists", "key_reused", "unprocessable"),
        conditions=("DATA_SOURCE_NOT_FOUND", "INVALID_CONF", "CANNOT_MODIFY", "FEATURE_NOT_ENABLED", "JAVA_GATEWAY_EXITED"),
        sql_states=("42K02", "56038", "F"),
    ),
    Rule(
        Category.UPSTREAM,
        True,
        (Hint("another system did not answer; see whether it is up"), _AGAIN),
        names=("ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "URLError", "ConnectException"),
        sql_states=("08",),
        texts=(r"Connection refused", r"Connection reset", r"UnknownHostException", r"Communications link failure"),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.STORAGE,
        True,
        (_AGAIN, _STORE),
        names=("OSError",),
        conditions=("FAILED_READ_FILE", "TASK_WRITE_FAILED", "CANNOT_LOAD_STATE_STORE"),
        texts=(
            r"java\.io\.(IO|EOF)Exception",
            r"FetchFailedException",
            r"AwsServiceException|AmazonS3Exception|SdkClientException",
        ),
        severity=Severity.WARNING,
    ),
    Rule(
        Category.TRANSFORM,
        False,
        (Hint("a value does not fit where the code puts it: use try_cast, try_divide, or clean the input first"),),
        sql_states=("22",),
    ),
)

# What is left is the code's own: trying it again would do the same.
_OTHERWISE = Rule(Category.TRANSFORM, False, (Hint("mend the asset's code, then run it again", "arco run"),))


def classify(facts: ErrorFacts) -> Failure:
    """The failure that these facts make."""
    rule = next((rule for rule in RULES if rule.fits(facts)), _OTHERWISE)
    own = (Hint(facts.hint),) if facts.hint else ()
    return Failure(
        rule.category,
        rule.severity,
        rule.transient,
        clip(" ".join(facts.text.split()), 500),
        (*own, *rule.hints),
        facts.condition,
        facts.sql_state,
        facts.where,
    )


def facts_of(error: BaseException) -> ErrorFacts:
    """The facts of any exception that is not Spark's."""
    chain = list(causes(error))
    names = tuple(dict.fromkeys(kind.__name__ for one in chain for kind in type(one).__mro__ if kind is not object))
    ours = next((one for one in chain if isinstance(one, ArcoError)), None)
    text = ours.message if ours is not None else f"{type(error).__name__}: {error}"
    code, hint = (ours.code, ours.hint) if ours is not None else (None, None)
    return ErrorFacts(names, text, where=user_line(chain), code=code, hint=hint)


def causes(error: BaseException) -> Sequence[BaseException]:
    """An exception and what it was raised from, outermost first."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


_OUR_FOLDER = f"{Path(__file__).parents[2]}{os.sep}"
_NOT_THEIRS = re.compile(r"[/\\](site-packages|pyspark|py4j|lib[/\\]python[\d.]+)[/\\]|^<")


def is_theirs(file: str) -> bool:
    """Whether a file of a trace is the user's own. A project may stand in a folder with our name: what counts is where we are."""
    return not file.startswith(_OUR_FOLDER) and not _NOT_THEIRS.search(file)


def user_line(chain: Sequence[BaseException]) -> str | None:
    """The innermost line of the user's own code in the traces."""
    for one in reversed(chain):
        for frame in reversed(traceback.extract_tb(one.__traceback__)):
            if is_theirs(frame.filename):
                return f"{frame.filename}:{frame.lineno}"
    return None
