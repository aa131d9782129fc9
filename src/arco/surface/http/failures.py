"""How an error reaches a client: Iceberg's envelope, with the type and the status its clients act on.

Nothing of the inside leaves: an error that is not one of ours becomes a plain 500 with the request's id, and the log has the
rest.
"""

from arco.kernel.errors import ArcoError, AskHistory
from arco.surface.http.exchange import Response, json_response

# Our code -> the exception that Iceberg's clients know, where the status alone does not say enough.
_TYPES = {
    "no_such_namespace": "NoSuchNamespaceException",
    "no_such_table": "NoSuchTableException",
    "no_such_view": "NoSuchViewException",
    "already_exists": "AlreadyExistsException",
    "namespace_not_empty": "NamespaceNotEmptyException",
    "key_reused": "CommitFailedException",
    "conflict": "CommitFailedException",
    "fenced": "CommitFailedException",
    "invalid_metadata": "IllegalArgumentException",
    "unprocessable": "UnprocessableEntityException",
    "access_denied": "ForbiddenException",
    "throttled": "SlowDownException",
    "unavailable": "ServiceUnavailableException",
    "outcome_unknown": "CommitStateUnknownException",
    "too_large": "BadRequestException",
}
_BY_STATUS = {400: "BadRequestException", 404: "NotFoundException", 409: "CommitFailedException"}
_RETRY_AFTER_S = 1


def failure(error: ArcoError) -> Response:
    kind = _TYPES.get(error.code, _BY_STATUS.get(error.status, "ServerError"))
    return envelope(error.status, kind, error.message)


def envelope(status: int, kind: str, message: str) -> Response:
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if status == 503 else {}
    return json_response({"error": {"message": message, "type": kind, "code": status}}, status, headers)


def hidden(request_id: str) -> Response:
    """For errors that are none of ours: to a client the outcome of a mutation is unknown then."""
    return envelope(AskHistory.status - 4, "InternalServerError", f"internal error; the log has it as {request_id}")
