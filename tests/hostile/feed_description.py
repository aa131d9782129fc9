"""The feed of events as this server answers it, in the manner of Iceberg's description, which does not have the draft yet."""

from typing import Any

NAMES = {"type": "array", "items": {"type": "string"}}
IDENTIFIER = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {"namespace": NAMES, "name": {"type": "string"}},
}
QUERY = {
    "type": "object",
    "properties": {
        "continuation-token": {"type": "string"},
        "page-size": {"type": "integer", "format": "int32"},
        "after-timestamp-ms": {"type": "integer", "format": "int64"},
        "operation-types": NAMES,
        "catalog-objects-by-name": {"type": "array", "items": NAMES},
        "catalog-objects-by-id": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["uuid", "type"],
                "properties": {"uuid": {"type": "string"}, "type": {"type": "string", "enum": ["table", "view"]}},
            },
        },
        "object-types": {"type": "array", "items": {"type": "string", "enum": ["namespace", "table", "view"]}},
        "custom-filters": {"type": "object", "additionalProperties": True},
    },
}
OPERATION = {
    "type": "object",
    "required": ["operation-type"],
    "properties": {
        "operation-type": {"type": "string"},
        "custom-type": {"type": "string", "pattern": "^x-"},
        "identifier": IDENTIFIER,
        "source": IDENTIFIER,
        "destination": IDENTIFIER,
        "table-uuid": {"type": "string", "format": "uuid"},
        "view-uuid": {"type": "string", "format": "uuid"},
        "namespace": NAMES,
        "updates": {"type": "array", "items": {"type": "object", "required": ["action"]}},
        "updated": NAMES,
        "removed": NAMES,
        "properties": {"type": "object", "additionalProperties": {"type": "string"}},
        "purge": {"type": "boolean"},
    },
    "additionalProperties": False,
}
EVENT = {
    "type": "object",
    "required": ["event-id", "request-id", "request-event-count", "timestamp-ms", "operation"],
    "properties": {
        "event-id": {"type": "string"},
        "request-id": {"type": "string"},
        "request-event-count": {"type": "integer", "minimum": 1},
        "timestamp-ms": {"type": "integer"},
        "actor": {"type": "object"},
        "operation": OPERATION,
    },
}
ANSWER = {
    "type": "object",
    "required": ["continuation-token", "highest-processed-timestamp-ms", "events"],
    "properties": {
        "continuation-token": {"type": "string"},
        "highest-processed-timestamp-ms": {"type": "integer"},
        "events": {"type": "array", "items": EVENT},
    },
}


def described_feed() -> dict[str, Any]:
    """The path of the feed, in the words and with the references of Iceberg's description."""
    errors = {"400": "BadRequestErrorResponse", "401": "UnauthorizedResponse", "403": "ForbiddenResponse"}
    answers = {code: {"$ref": f"#/components/responses/{name}"} for code, name in errors.items()}
    good = {"description": "some events", "content": {"application/json": {"schema": ANSWER}}}
    return {
        "parameters": [{"$ref": "#/components/parameters/prefix"}],
        "post": {
            "operationId": "queryEvents",
            "requestBody": {"required": True, "content": {"application/json": {"schema": QUERY}}},
            "responses": {"200": good, **answers, "503": {"$ref": "#/components/responses/ServiceUnavailableResponse"}},
        },
    }
