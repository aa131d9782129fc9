"""Hashes over several fields, where no two different lists of fields can collide by concatenation (hazard 22).

Every field is preceded by its length as eight bytes, and the whole by a purpose, so that `("ab", "c")` and `("a", "bc")`
differ, and so do a plan's and an edge's hash over the same fields.
"""

import hashlib

from arco.kernel.errors import InvalidInput


def fingerprint(purpose: str, *fields: str | bytes) -> str:
    """SHA-256 in hex over length-prefixed fields."""
    digest = hashlib.sha256()
    for field in (purpose, *fields):
        data = _utf8(field) if isinstance(field, str) else field
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("text with a lone surrogate has no fingerprint", hint="use text that is valid Unicode") from None


def content_hash(data: bytes) -> str:
    """SHA-256 in hex of one body, for checksums in manifests and chains."""
    return hashlib.sha256(data).hexdigest()
