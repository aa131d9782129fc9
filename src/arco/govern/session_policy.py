"""What a session on S3 may do, as the policy document that AssumeRole takes: the files under some folders, and nothing else.

In a policy `*` and `?` match anything and `${…}` is filled in by the service, so a folder's name could say more than itself
(CVE-2026-42810). Every character of a name goes through `literal`; the document is encoded as JSON, never glued together.
"""

import json
from collections.abc import Sequence
from typing import Any

from arco.govern.places import ValidatedPlace
from arco.govern.vending import Access, Grant
from arco.kernel.errors import BrokenInvariant, InvalidInput
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
LISTS_ITS_OWN = "StringLike"
LISTS_OR_SAYS_NO_PREFIX = "StringLikeIfExists"
"""Amazon says of a name that is not there that it is not, instead of that it is forbidden, only to who may list with no prefix.

Spark's connector looks for names before it writes them. Who has such a session can list names of the whole bucket by saying no
prefix; it reads none of them. Not every other store knows the word, and those that are tried here do without.
"""
_SPECIAL = {"*": "${*}", "?": "${?}", "$": "${$}"}


def session_policy(place: ValidatedPlace, access: Access, *, partition: str = "aws", kms_key: str | None = None) -> str:
    """The document for one place. `partition` is the part of the cloud that names of resources begin with."""
    return policy_of((Grant(place, access),), partition=partition, kms_key=kms_key)


def policy_of(
    grants: Sequence[Grant], *, partition: str = "aws", kms_key: str | None = None, listing: str = LISTS_ITS_OWN
) -> str:
    """The document for several places of one bucket, each with its own access."""
    buckets = {one.place.bucket for one in grants}
    if len(buckets) != 1:
        raise BrokenInvariant("a session policy is for places of one bucket")
    bucket = f"arn:{partition}:s3:::{literal(buckets.pop())}"
    accesses = [access for access in Access if any(one.access is access for one in grants)]
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": _ACTIONS[access], "Resource": [f"{bucket}/{one}" for one in _files(grants, access)]}
        for access in accesses
    ]
    statements.append(
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": [bucket],
            "Condition": {listing: {"s3:prefix": _files(grants)}},
        }
    )
    if kms_key is not None:
        statements.append({"Effect": "Allow", "Action": _KEY_ACTIONS[accesses[-1]], "Resource": [literal(kms_key)]})
    # ASCII alone: the service takes no other characters here.
    document = json.dumps({"Version": "2012-10-17", "Statement": statements}, ensure_ascii=True, separators=(",", ":"))
    if len(document) > SESSION_POLICY_CHARS_MAX:
        raise _too_long(len(document), len(grants))
    return document


def _files(grants: Sequence[Grant], access: Access | None = None) -> list[str]:
    """Patterns of the files that are meant, each once, without those that another of them covers."""
    found = sorted({one.beginning for one in grants if access is None or one.access is access})
    return [f"{literal(one)}*" for one in found if not any(one.startswith(other) for other in found if other != one)]


def _too_long(characters: int, places: int) -> InvalidInput:
    if places == 1:
        said, hint = "the folder of this table is too long for a session policy", "use a root with a shorter path"
    else:
        said, hint = (
            f"{places} places are too many for one session policy",
            "use fewer inputs, or a root with a shorter path",
        )
    return InvalidInput(f"{said}: {characters} characters of {SESSION_POLICY_CHARS_MAX}", hint=hint)


def literal(text: str) -> str:
    """A text that matches itself alone, wherever a policy takes a pattern."""
    return "".join(_SPECIAL.get(character, character) for character in text)
