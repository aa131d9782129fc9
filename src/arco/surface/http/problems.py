"""Errors as problem details (RFC 9457): every error of the platform API.

    {"type": "urn:arco:error:invalid_items", "title": "fix the request", "status": 400, "detail": "…", "code": "invalid_items",
     "hint": "…", "instance": "urn:arco:request:…", "errors": [{"index": 3, "code": "…", "detail": "…"}]}

Nothing of the inside leaves here either: what is wrong with the server is said as `failures.py` says it.
"""

from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType

from arco.kernel.errors import ERROR_TABLE, ArcoError, BeyondReach, InvalidItems, PendingIngestion
from arco.surface.http.declaring import API
from arco.surface.http.exchange import Response

MEDIA_TYPE = "application/problem+json"

# For answers about HTTP itself, which no error of ours stands behind.
_CODES = {
    400: "invalid_input",
    401: "access_denied",
    403: "access_denied",
    404: "not_found",
    405: "fix_request",
    408: "fix_request",
    413: "too_large",
    415: "fix_request",
    416: "fix_request",
    500: "internal",
    503: "retry_later",
    504: "outcome_unknown",
}
_FOLDED_SOON_S = 5


class ItemDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with one item of a list, by its place from 0."""

    index: int
    code: str
    detail: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong. `code` is the end of `type` and never changes its meaning, `title` is what to do about it.

    `errors`: of a list that was sent. `oldest`: the oldest moment that can be asked for, where one lies too far back.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    instance: str
    errors: tuple[ItemDetail, ...] | UnsetType = UNSET
    oldest: datetime | UnsetType | None = UNSET


def speaks_problems(path: str) -> bool:
    """Whether errors under a path are problem details."""
    return path == API or path.startswith(f"{API}/")


def as_problem(plain: Response, request_id: str, error: ArcoError | None = None) -> Response:
    """An error in Iceberg's envelope, said as a problem; of an error of ours also its code and what more it knows."""
    code = _CODES.get(plain.status, "fix_request") if error is None else error.code
    row = ERROR_TABLE[code]
    shown = None if plain.status >= 500 else error
    known = Problem(
        type=f"urn:arco:error:{code}",
        title=row.action.value,
        status=plain.status,
        detail=shown.message if shown else msgspec.json.decode(plain.body)["error"]["message"],
        code=code,
        hint=shown.hint if shown else row.hint,
        instance=f"urn:arco:request:{request_id}",
        errors=_errors(error) if isinstance(error, InvalidItems) else UNSET,
        oldest=_moment(error.oldest_ms) if isinstance(error, BeyondReach) else UNSET,
    )
    headers = {**plain.headers, "Content-Type": MEDIA_TYPE}
    if isinstance(error, PendingIngestion):
        headers["Retry-After"] = str(_FOLDED_SOON_S)
    return Response(plain.status, msgspec.json.encode(known), headers)


def _errors(error: InvalidItems) -> tuple[ItemDetail, ...]:
    return tuple(ItemDetail(index=one.index, code=one.code, detail=one.message) for one in error.problems)


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
