"""Answers packed for who can unpack them. What must never enter: what an answer means."""

import re
import zlib

_GZIP = 16 + zlib.MAX_WBITS


def gzip_packed(data: bytes) -> bytes:
    """Quickly rather than tightly: whoever waits for it waits for this too."""
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    return packer.compress(data) + packer.flush()


def accepts_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header takes gzip. A weight of 0 means no."""
    for part in accepted.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() in {"gzip", "x-gzip"}:
            return not re.fullmatch(r"q=0(?:\.0{0,3})?", parameters.replace(" ", ""))
    return False
