"""One spelling for every JSON value (RFC 8785), so that equal requests have equal hashes.

One extension to the standard: integers are written as their exact digits. Snapshot ids exceed 2^53, and as
doubles two different ids could become one. Two consequences, both deliberate:

- `1e21` (a double) and `1000000000000000000000` (an integer) are spelled differently; below 1e21 a whole
  double and the integer with the same digits share a spelling, as `1.0` and `1` do;
- a double between 2^53 and 1e21 is spelled by its shortest digits and reads back as the integer they name.

`parse_strict` accepts less than `json.loads`: what two readers could understand differently is refused. What
must never enter: a dependency, I/O, and any leniency ("the last duplicate wins", "replace bad bytes").
"""

import hashlib
import json
import math
import re
from collections import Counter
from typing import NoReturn, TypeAlias

from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import clip
from arco.kernel.limits import JSON_BODY_BYTES_MAX, JSON_DEPTH_MAX, JSON_NUMBER_DIGITS_MAX

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

# An interpreter may be started so that it refuses to convert more than 640 digits, but never fewer. Pieces of
# this size always convert: what Arco accepts does not depend on how Python was started.
_PIECE_DIGITS = 500
_PIECE: int = 10**_PIECE_DIGITS
_INTEGER_BOUND: int = 10**JSON_NUMBER_DIGITS_MAX

_SURROGATE_HINT = "send text that is valid Unicode"


def canonical_bytes(value: JsonValue) -> bytes:
    """The one spelling of `value`; what `parse_strict` would not read back is refused."""
    try:
        if _is_plain(value, JSON_DEPTH_MAX):
            return _spelled(value).encode()
        parts: list[str] = []
        _write(value, parts, JSON_DEPTH_MAX)
        return "".join(parts).encode()
    except UnicodeEncodeError:
        raise InvalidInput("a string holds a lone surrogate", hint=_SURROGATE_HINT) from None


def request_hash(value: JsonValue) -> str:
    """SHA-256 in hex over the canonical bytes; the caller puts the operation and its scope inside `value`."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def parse_strict(data: bytes, *, max_bytes: int = JSON_BODY_BYTES_MAX, max_depth: int = JSON_DEPTH_MAX) -> JsonValue:
    """Read one JSON text, refusing whatever two readers could understand differently."""
    if len(data) > max_bytes:
        raise TooLarge(f"JSON text of {len(data)} bytes is over the limit of {max_bytes} bytes")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidInput("JSON text starts with a byte order mark", hint="send UTF-8 without one")
    _check_depth(data, max_depth)
    _check_surrogates(data)
    try:
        value: JsonValue = _DECODER.decode(data.decode())
    # Both exceptions carry the whole text; `from None` keeps it out of printed tracebacks.
    except UnicodeDecodeError as error:
        raise InvalidInput(f"JSON text is invalid UTF-8 at byte {error.start}", hint="send UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidInput(f"not valid JSON: {error.msg.rstrip(': ')} ({where})") from None
    return value


# --- writing


_quoted = json.JSONEncoder(ensure_ascii=False).encode

# Python's own encoder, written in C, spells plain values as the standard does, and several times as fast as the code below.
_spelled = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode
_PLAIN_INTEGER_END = 2**63


def _is_plain(value: object, depth_left: int) -> bool:
    """Whether there is nothing in a value that Python spells, sorts or accepts otherwise than the standard."""
    if isinstance(value, str) or value is None:
        return True
    if isinstance(value, int):
        return -_PLAIN_INTEGER_END < value < _PLAIN_INTEGER_END
    if depth_left == 0:
        return False
    if isinstance(value, dict):
        for key, item in value.items():
            if not (isinstance(key, str) and key.isascii()):
                return False
            # What most of them are, asked without a call for each.
            kind = type(item)
            if kind is not str and kind is not bool and not _is_plain(item, depth_left - 1):
                return False
        return True
    if isinstance(value, list):
        return all(type(item) is str or _is_plain(item, depth_left - 1) for item in value)
    return False


def _write(value: object, parts: list[str], depth_left: int) -> None:
    match value:
        case None:
            parts.append("null")
        case bool():  # before int: True is an int to Python, never to JSON
            parts.append("true" if value else "false")
        case str():
            parts.append(_quoted(value))
        case int():
            parts.append(_integer_text(value))
        case float():
            parts.append(_double_text(value))
        case list() | dict() if depth_left == 0:
            raise TooLarge(f"JSON value is nested deeper than {JSON_DEPTH_MAX} levels, or contains itself")
        case list():
            separator = "["
            for item in value:
                parts.append(separator)
                _write(item, parts, depth_left - 1)
                separator = ","
            parts.append("]" if value else "[]")
        case dict():
            separator = "{"
            for key in _sorted_keys(value):
                parts.append(f"{separator}{_quoted(key)}:")
                _write(value[key], parts, depth_left - 1)
                separator = ","
            parts.append("}" if value else "{}")
        case _:
            raise InvalidInput(f"a Python {type(value).__name__} has no JSON form", hint="convert it first")


def _sorted_keys(value: dict[object, object]) -> list[str]:
    keys = [key for key in value if isinstance(key, str)]
    if len(keys) != len(value):
        raise InvalidInput("a key of a JSON object is not a string", hint="convert it first")
    if all(map(str.isascii, keys)):
        return sorted(keys)
    # The standard sorts as JavaScript does: characters beyond U+FFFF come before U+E000 to U+FFFF.
    return sorted(keys, key=lambda key: key.encode("utf-16-be"))


def _integer_text(value: int) -> str:
    if not -_INTEGER_BOUND < value < _INTEGER_BOUND:
        raise TooLarge(f"a number has more than {JSON_NUMBER_DIGITS_MAX} digits")
    return f"-{_digits(-value)}" if value < 0 else _digits(value)


def _digits(value: int) -> str:
    if value < _PIECE:
        return int.__repr__(value)
    head, tail = divmod(value, _PIECE)
    return _digits(head) + int.__repr__(tail).zfill(_PIECE_DIGITS)


def _double_text(value: float) -> str:
    """ECMAScript Number::toString: Python finds the same shortest digits and places the point differently."""
    if not math.isfinite(value):
        raise InvalidInput("NaN and Infinity are not JSON numbers", hint="use null or a string")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    padded = whole + fraction
    digits = padded.lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(padded) - len(digits))  # value = 0.digits * 10**point
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return f"{sign}{digits.ljust(point, '0')}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


# --- reading


_CLOSING = b"]}"
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
# The closing quote is optional: a string without end must not make the scan start over at its inner quotes.
_STRING = re.compile(rb'"[^"]*"?')

# Escapes are consumed whole, from left to right, so that `\\ud800` is a backslash and five letters, and a
# pair is a pair; the group is a surrogate left alone. Raw surrogates are invalid UTF-8 and refused as that.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def _check_depth(data: bytes, max_depth: int) -> None:
    # Before parsing, because the parser recurses once per bracket. Up to the parser's first complaint both
    # see the same strings and brackets, so it never goes deeper than this count.
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")  # in this order: `\\"` does end a string
    # Two quotes with no bracket between them cancel out: every bracket stays inside or outside a string.
    structure = unescaped.translate(None, _NOT_STRUCTURE).replace(b'""', b"")
    depth = 0
    for bracket in _STRING.sub(b"", structure):
        if bracket in _CLOSING:
            depth -= 1
        elif depth == max_depth:
            raise TooLarge(f"JSON text is nested deeper than {max_depth} levels")
        else:
            depth += 1


def _check_surrogates(data: bytes) -> None:
    if not _SURROGATE_ESCAPE.search(data):
        return
    for escape in _ESCAPE.finditer(data):
        if escape[1]:
            raise InvalidInput(f"JSON text escapes a lone surrogate at byte {escape.start()}", hint=_SURROGATE_HINT)


def _check_digit_count(text: str) -> None:
    # Signs, a point and an exponent's letter are no digits, but only a text over the limit needs counting.
    if len(text) <= JSON_NUMBER_DIGITS_MAX:
        return
    if len(text) - sum(map(text.count, "+-.eE")) > JSON_NUMBER_DIGITS_MAX:
        raise TooLarge(f"a number has more than {JSON_NUMBER_DIGITS_MAX} digits")


def _parse_integer(text: str) -> int:
    if len(text) <= _PIECE_DIGITS:
        return int(text)
    _check_digit_count(text)
    return -_from_digits(text[1:]) if text[0] == "-" else _from_digits(text)


def _from_digits(digits: str) -> int:
    if len(digits) <= _PIECE_DIGITS:
        return int(digits)
    head, tail = digits[:-_PIECE_DIGITS], digits[-_PIECE_DIGITS:]
    return _from_digits(head) * _PIECE + int(tail)


def _parse_double(text: str) -> float:
    _check_digit_count(text)
    value = float(text)
    if math.isinf(value):
        raise InvalidInput("a number overflows a double", hint="send it as a string")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidInput(f"{text} is not a JSON number", hint="use null or a string")


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidInput(f"duplicate key {clip(twice)!r} in a JSON object", hint="send each key once")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_parse_double,
    parse_int=_parse_integer,
    parse_constant=_refuse_constant,
)
