"""Hashes over several fields, where no two different lists of fields can collide by concatenation (hazard 22).

Every field is preceded by its length as eight bytes, and the whole by a purpose, so that `("ab", "c")` and `("a", "bc")`
differ, and so do a plan's and an edge's hash over the same fields.
"""

import hashlib
from collections.abc import Callable

from arco.kernel.errors import InvalidInput


def fingerprint(purpose: str, *fields: str | bytes) -> str:
    """SHA-256 in hex over length-prefixed fields."""
    if len(fields) == 1 and isinstance(fields[0], bytes):
        # A document can be large: it is not copied.
        digest = hashlib.sha256(_prefixed(purpose) + len(fields[0]).to_bytes(8, "big"))
        digest.update(fields[0])
        return digest.hexdigest()
    return hashlib.sha256(b"".join([_prefixed(field) for field in (purpose, *fields)])).hexdigest()


def fingerprints(before: tuple[str, ...], after: tuple[str, ...]) -> Callable[[str], str]:
    """`fingerprint` of many lists of fields that differ in one: the purpose and fields before it, and those after it."""
    head, tail = b"".join(map(_prefixed, before)), b"".join(map(_prefixed, after))
    return lambda field: hashlib.sha256(head + _prefixed(field) + tail).hexdigest()


def _prefixed(field: str | bytes) -> bytes:
    data = _utf8(field) if isinstance(field, str) else field
    return len(data).to_bytes(8, "big") + data


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("text with a lone surrogate has no fingerprint", hint="use text that is valid Unicode") from None


def content_hash(data: bytes) -> str:
    """SHA-256 in hex of one body, for checksums in manifests and chains."""
    return hashlib.sha256(data).hexdigest()
