"""A reader of S3's policies, written from their documentation: what a session with this policy may do.

`*` and `?` match anything, `${*}`, `${?}` and `${$}` stand for themselves, any other `${…}` is filled in by the service, here
with whatever is worst.
"""

import json
import re

_TOKEN = re.compile(r"\$\{(?P<variable>[^}]*)\}|(?P<star>\*)|(?P<mark>\?)|(?P<plain>.)", re.DOTALL)


def pattern_of(text: str) -> re.Pattern[str]:
    parts = []
    for token in _TOKEN.finditer(text):
        if token["variable"] is not None:
            # A variable of the session's could be filled with anything at all.
            parts.append(re.escape(token["variable"]) if token["variable"] in {"*", "?", "$"} else ".*")
        else:
            parts.append(".*" if token["star"] else "." if token["mark"] else re.escape(token["plain"]))
    return re.compile("".join(parts), re.DOTALL)


def allows(document: str, action: str, resource: str, prefix: str | None = None) -> bool:
    """Whether a session may do something; `prefix` is that of a listing."""
    policy = json.loads(document)
    assert policy["Version"] == "2012-10-17"
    return any(
        statement["Effect"] == "Allow"
        and action in statement["Action"]
        and any(pattern_of(one).fullmatch(resource) for one in statement["Resource"])
        and _holds(statement.get("Condition", {}), prefix)
        for statement in policy["Statement"]
    )


def _holds(condition: dict[str, dict[str, list[str]]], prefix: str | None) -> bool:
    if not condition:
        return True
    assert list(condition) == ["StringLike"]
    assert list(condition["StringLike"]) == ["s3:prefix"]
    return prefix is not None and any(pattern_of(one).fullmatch(prefix) for one in condition["StringLike"]["s3:prefix"])
