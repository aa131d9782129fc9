"""What a session on S3 may do, as the policy document that AssumeRole takes: the files under one folder, and nothing else.

In a policy `*` and `?` match anything and `${…}` is filled in by the service, so a folder's name could say more than itself
(CVE-2026-42810). Every character of a name goes through `literal`; the document is encoded as JSON, never glued together.
"""

import json
from typing import Any

from arco.govern.places import ValidatedPlace
from arco.govern.vending import Access
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import SESSION_POLICY_CHARS_MAX

_ACTIONS = {
    Access.READ: ["s3:GetObject"],
    Access.WRITE: [
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:AbortMultipartUpload",
        "s3:ListMultipartUploadParts",
    ],
}
_KEY_ACTIONS = {Access.READ: ["kms:Decrypt"], Access.WRITE: ["kms:Decrypt", "kms:GenerateDataKey"]}
_SPECIAL = {"*": "${*}", "?": "${?}", "$": "${$}"}


def session_policy(place: ValidatedPlace, access: Access, *, partition: str = "aws", kms_key: str | None = None) -> str:
    """The document. `partition` is the part of the cloud that names of resources begin with."""
    bucket, folder = f"arn:{partition}:s3:::{literal(place.bucket)}", literal(place.path)
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": _ACTIONS[access], "Resource": [f"{bucket}/{folder}/*"]},
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": [bucket],
            "Condition": {"StringLike": {"s3:prefix": [f"{folder}/*"]}},
        },
    ]
    if kms_key is not None:
        statements.append({"Effect": "Allow", "Action": _KEY_ACTIONS[access], "Resource": [literal(kms_key)]})
    # ASCII alone: the service takes no other characters here.
    document = json.dumps({"Version": "2012-10-17", "Statement": statements}, ensure_ascii=True, separators=(",", ":"))
    if len(document) > SESSION_POLICY_CHARS_MAX:
        raise InvalidInput(
            f"the folder of this table is too long for a session policy: {len(document)} characters",
            hint="use a root with a shorter path",
        )
    return document


def literal(text: str) -> str:
    """A text that matches itself alone, wherever a policy takes a pattern."""
    return "".join(_SPECIAL.get(character, character) for character in text)
