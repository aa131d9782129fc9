"""Errors as problem details (RFC 9457), for the routes of the platform API that speak them.

    {"type": "urn:arco:error:invalid_items", "title": "fix the request", "status": 400, "detail": "…", "code": "invalid_items",
     "hint": "…", "instance": "urn:arco:request:…", "errors": [{"index": 3, "code": "…", "detail": "…"}]}

Nothing of the inside leaves here either: what is wrong with the server is said as `failures.py` says it.
"""

from typing import Any

import msgspec

from arco.kernel.errors import ERROR_TABLE, ArcoError, InvalidItems
from arco.surface.http.exchange import Response

PATHS = ("/api/v1/catalog", "/api/v1/events", "/api/v1/fold", "/api/v1/lineage")
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


def speaks_problems(path: str) -> bool:
    """Whether errors under a path are problem details."""
    return any(path == one or path.startswith(f"{one}/") for one in PATHS)


def as_problem(plain: Response, request_id: str, error: ArcoError | None = None) -> Response:
    """An error in Iceberg's envelope, said as a problem; of an error of ours also its code and what is wrong item by item."""
    code = _CODES.get(plain.status, "fix_request") if error is None else error.code
    row = ERROR_TABLE[code]
    known: dict[str, Any] = {
        "type": f"urn:arco:error:{code}",
        "title": row.action.value,
        "status": plain.status,
        "detail": msgspec.json.decode(plain.body)["error"]["message"],
        "code": code,
        "hint": row.hint if error is None or plain.status >= 500 else error.hint,
        "instance": f"urn:arco:request:{request_id}",
    }
    if isinstance(error, InvalidItems):
        known["errors"] = [{"index": one.index, "code": one.code, "detail": one.message} for one in error.problems]
    headers = {**plain.headers, "Content-Type": MEDIA_TYPE}
    return Response(plain.status, msgspec.json.encode(known), headers)
