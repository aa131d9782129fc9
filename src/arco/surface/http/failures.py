"""How an error reaches a client: Iceberg's envelope, with the type and the status its clients act on.

Nothing of the inside leaves. What is wrong with a request is said in full; what is wrong with the server (its store, its
state, a bug) is said in a fixed sentence with the request's id, and the log has the rest.
"""

from msgspec.structs import replace

from arco.kernel.errors import ArcoError
from arco.surface.http.exchange import Response, json_response

# Our code -> the exception that Iceberg's clients know. Its Java client turns a 400 of type IllegalArgumentException into
# just that, which is what its own catalogs throw; any other 400 becomes "Malformed request".
_TYPES = {
    "invalid_metadata": "IllegalArgumentException",
    "unprocessable": "UnprocessableEntityException",
    "too_large": "BadRequestException",
    "no_such_namespace": "NoSuchNamespaceException",
    "no_such_table": "NoSuchTableException",
    "no_such_view": "NoSuchViewException",
    "already_exists": "AlreadyExistsException",
    "namespace_not_empty": "NamespaceNotEmptyException",
    "key_reused": "CommitFailedException",
    "conflict": "CommitFailedException",
    "fenced": "CommitFailedException",
    "throttled": "SlowDownException",
    "unavailable": "ServiceUnavailableException",
    "outcome_unknown": "CommitStateUnknownException",
    "given_up": "CommitStateUnknownException",
}
_BY_STATUS = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    405: "UnsupportedOperationException",
    409: "CommitFailedException",
    410: "NotFoundException",
    500: "InternalServerError",
    503: "ServiceUnavailableException",
    504: "CommitStateUnknownException",
}
_UNKNOWN = "it is not known whether this request had its effect: repeat it with the same Idempotency-Key, or read the state"
_HIDDEN = {
    "retry_later": "others are at work on the same; nothing was done, come again",
    "throttled": "the catalog's store asks for a pause",
    "busy": "more commits to this table wait than the server takes on; nothing was done, come again",
    "unavailable": "the catalog's store does not answer",
    "store_refused": "the catalog's store does not let the server do this",
    "outcome_unknown": _UNKNOWN,
    "given_up": _UNKNOWN,
    "ask_history": _UNKNOWN,
}
_RETRY_AFTER_S = 1


def failure(error: ArcoError, request_id: str, *, may_come_again: bool = False) -> Response:
    """An error, as its client hears it. A change with a key may come again even if it is not known what became of it."""
    kind = _TYPES.get(error.code, _BY_STATUS.get(error.status, "BadRequestException"))
    if error.status < 500:
        return envelope(error.status, kind, _in_full(error))
    said = _HIDDEN.get(error.code, f"the catalog needs its operator ({error.code})")
    told = envelope(error.status, kind, f"{said}; the log has it as {request_id}")
    return _come_again(told) if may_come_again and error.status == 504 else told


def _in_full(error: ArcoError) -> str:
    """What is wrong, and the way out if this error has one of its own: the envelope has no other place for it."""
    return error.message if error.own_hint is None else f"{error.message}: {error.own_hint}"


def refusal(status: int, message: str, **headers: str) -> Response:
    """An answer about HTTP itself. A header's name is written with _ for -."""
    kind = _BY_STATUS.get(status, "BadRequestException")
    plain = envelope(status, kind, message)
    return Response(
        status, plain.body, {**plain.headers, **{name.replace("_", "-"): text for name, text in headers.items()}}
    )


def envelope(status: int, kind: str, message: str) -> Response:
    told = json_response({"error": {"message": message, "type": kind, "code": status}}, status)
    return _come_again(told) if status == 503 else told


def _come_again(told: Response) -> Response:
    return replace(told, headers={**told.headers, "Retry-After": str(_RETRY_AFTER_S)})


def no_room(*, may_have_landed: bool) -> Response:
    """For a request that is not looked at. One with a key may be a retry: told 503, its client would clean up (PROTOCOLS C8)."""
    busy = "the server has as much to do as it can"
    if may_have_landed:
        return _come_again(refusal(504, f"{busy}; {_UNKNOWN}"))
    return refusal(503, f"{busy}; nothing was done")


def hidden(request_id: str) -> Response:
    """For errors that are none of ours: to a client the outcome of a mutation is unknown then."""
    return refusal(500, f"internal error; the log has it as {request_id}")


def overdue(request_id: str, *, mutates: bool, may_come_again: bool = False) -> Response:
    """For a request that takes too long, and goes on: a mutation may still have its effect."""
    if mutates:
        told = refusal(504, f"{_UNKNOWN}; the log has it as {request_id}")
        return _come_again(told) if may_come_again else told
    return refusal(503, f"this takes longer than the server lets a client wait; the log has it as {request_id}")
