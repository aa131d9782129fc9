"""Every error Arco raises on purpose, grouped by what the caller does about it.

    ArcoError
    ├── FixRequest        the request is wrong; sending it again changes nothing
    │   ├── InvalidInput          malformed value, hostile name, bad URL
    │   │   ├── InvalidMetadata       well formed, and not what the table format allows
    │   │   └── InvalidItems          some items of a list; each with what is wrong
    │   ├── TooLarge              a named limit was passed
    │   ├── NotFound              the thing named does not exist
    │   │   ├── NoSuchNamespace
    │   │   ├── NoSuchTable
    │   │   ├── NoSuchView
    │   │   ├── BeyondReach           it was there, and is too long ago
    │   │   └── PendingIngestion      a run that nothing is folded of: later, or never
    │   ├── AlreadyExists         the name is taken
    │   ├── NamespaceNotEmpty     it still holds tables, views or namespaces
    │   ├── KeyReused             an idempotency key came back with another request
    │   ├── Unprocessable         every part is well formed, and together they contradict each other
    │   └── AccessDenied          credentials missing or not sufficient
    ├── Refresh           the world moved; read again, then decide again
    │   ├── Conflict              a requirement no longer holds
    │   │   ├── PartitionsTouched     another commit changed what this one replaces
    │   │   └── Superseded            other code of this project was deployed since
    │   └── Fenced                a newer owner holds a higher epoch
    ├── RetryLater        nothing happened and nothing will; try again after a pause
    │   ├── Throttled             the store or the server asks for a pause
    │   ├── Busy                  this server has as much of it to do as it takes on
    │   └── Unavailable           the store cannot be reached
    ├── AskHistory        the outcome is not known; only a later read can tell
    │   └── OutcomeUnknown
    │       └── GivenUp           another attempt of this request was refused, and said so for all of them
    └── AskOperator       the state or the installation is wrong; a person must look
        ├── CorruptObject         bytes that do not parse or whose checksum is wrong
        ├── UnknownFormat         written by a newer Arco; never guessed at
        ├── StoreUnsuitable       the store ignores conditions or breaks a promise
        ├── StoreRefused          the store does not let us: no client's fault, and no answer to keep
        └── BrokenInvariant       a bug in Arco: an assertion that stays on

Codes are stable and only ever added. `ERROR_TABLE` is the one place that maps a code to an HTTP status, an action and a
hint; the HTTP surface, the command line and the documentation read it. What must never enter: formatting for one
surface, and any error that means "it probably worked".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Action(StrEnum):
    """What the caller does next."""

    FIX = "fix the request"
    REFRESH = "read again, then decide again"
    RETRY = "retry after a pause"
    ASK_HISTORY = "ask with the same key, or read the state"
    OPERATOR = "ask an operator"


class ArcoError(Exception):
    """Base of all deliberate errors: a stable code, one line of text, and the way out; `own_hint` if this one says its own."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    action: ClassVar[Action] = Action.OPERATOR
    default_hint: ClassVar[str] = "report this with the request id"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.own_hint = hint
        self.hint = self.default_hint if hint is None else hint

    def one_line(self) -> str:
        """What is wrong, then what to do, with nothing that could break a log line."""
        text = f"{self.message}: {self.hint}" if self.hint else self.message
        return " ".join(text.split())


class FixRequest(ArcoError):
    code = "fix_request"
    status = 400
    action = Action.FIX
    default_hint = "correct the request and send it again"


class InvalidInput(FixRequest):
    code = "invalid_input"


class InvalidMetadata(InvalidInput):
    code = "invalid_metadata"
    default_hint = "ask for metadata that the table format allows"


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """What is wrong with one item of a list, by its place from 0."""

    index: int
    code: str
    message: str


class InvalidItems(InvalidInput):
    """Nothing of a list was taken, because of some of its items. `problems` has one for each of them."""

    code = "invalid_items"
    default_hint = "correct these items and send the list again"

    def __init__(self, message: str, problems: Sequence[ItemProblem] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class TooLarge(FixRequest):
    code = "too_large"
    status = 413
    default_hint = "send less; the limits are listed in docs/limits.md"


class NotFound(FixRequest):
    code = "not_found"
    status = 404
    default_hint = "check the name"


class NoSuchNamespace(NotFound):
    code = "no_such_namespace"


class NoSuchTable(NotFound):
    code = "no_such_table"


class NoSuchView(NotFound):
    code = "no_such_view"


class BeyondReach(NotFound):
    """`oldest_ms` is the oldest moment that can still be asked for, if there is one."""

    code = "beyond_reach"
    status = 410
    default_hint = "ask for a later moment"

    def __init__(self, message: str, *, oldest_ms: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.oldest_ms = oldest_ms


class PendingIngestion(NotFound):
    """Of a run nothing is folded. Whether there is such a run is not known here."""

    code = "pending_ingestion"
    default_hint = "ask again in some seconds, or run `arco fold`"


class AlreadyExists(FixRequest):
    code = "already_exists"
    status = 409
    default_hint = "choose another name"


class NamespaceNotEmpty(FixRequest):
    code = "namespace_not_empty"
    status = 409
    default_hint = "drop what it holds first"


class KeyReused(FixRequest):
    code = "key_reused"
    status = 409
    default_hint = "use a new idempotency key for a new request"


class Unprocessable(FixRequest):
    code = "unprocessable"
    status = 422
    default_hint = "the request contradicts itself"


class AccessDenied(FixRequest):
    code = "access_denied"
    status = 403
    default_hint = "check the credentials and what they may do"


class Refresh(ArcoError):
    code = "refresh"
    status = 409
    action = Action.REFRESH
    default_hint = "read the current state and try again on it"


class Conflict(Refresh):
    code = "conflict"


class PartitionsTouched(Conflict):
    code = "partitions_touched"
    default_hint = "run the task again on the table as it is now"


class Superseded(Conflict):
    code = "superseded"
    default_hint = "start it with the code that counts; arco deploy goes back to this code on purpose"


class Fenced(Refresh):
    code = "fenced"
    default_hint = "another owner took over; stop this one"


class RetryLater(ArcoError):
    code = "retry_later"
    status = 503
    action = Action.RETRY
    default_hint = "try again after a pause"


class Throttled(RetryLater):
    code = "throttled"


class Busy(RetryLater):
    """This server has as much of it to do as it takes on. Nothing was done."""

    code = "busy"


class Unavailable(RetryLater):
    code = "unavailable"
    default_hint = "check that the store is reachable, then try again"


class AskHistory(ArcoError):
    code = "ask_history"
    status = 504
    action = Action.ASK_HISTORY
    default_hint = "repeat with the same key: it will be answered, never done twice"


class OutcomeUnknown(AskHistory):
    code = "outcome_unknown"


class GivenUp(OutcomeUnknown):
    code = "given_up"


class AskOperator(ArcoError):
    code = "ask_operator"


class CorruptObject(AskOperator):
    code = "corrupt_object"
    default_hint = "restore the object or run arco verify"


class UnknownFormat(AskOperator):
    code = "unknown_format"
    default_hint = "run pip install --upgrade arco: this was written by a newer version"


class StoreUnsuitable(AskOperator):
    code = "store_unsuitable"
    default_hint = "use a store that passes arco doctor"


class StoreRefused(AskOperator):
    code = "store_refused"
    default_hint = "see to the store: its permissions, credentials and mounts"


class BrokenInvariant(AskOperator):
    code = "broken_invariant"
    default_hint = "this is a bug in Arco; report it with this message"


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One line of the table: what a surface needs to answer an error without knowing its class."""

    code: str
    status: int
    action: Action
    hint: str


def _rows(cls: type[ArcoError]) -> list[ErrorRow]:
    row = ErrorRow(cls.code, cls.status, cls.action, cls.default_hint)
    return [row, *(below for sub in cls.__subclasses__() for below in _rows(sub))]


ERROR_TABLE: dict[str, ErrorRow] = {row.code: row for row in _rows(ArcoError)}
