"""How commands print: for people, and for programs. What must never enter: what is printed."""

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import msgspec
import typer
from rich.cells import cell_len
from rich.filesize import decimal

_FOLDED_CHARS_MIN = 8
_UNITS = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NO_PAINT: Mapping[int, Mapping[str, str]] = {}
_FOR_TERMINALS = {"\n": "\n", "\t": "    "} | dict.fromkeys(_TURNS, "\ufffd")


def say(text: str) -> None:
    """One sentence, as it is."""
    typer.echo(shown(text))


def say_aside(text: str) -> None:
    """One sentence that is no part of the answer: programs that read the answer do not get it."""
    typer.echo(shown(text), err=True)


def say_painted(*parts: tuple[str, str]) -> None:
    """One line in several colours; only its words where nobody sees colours."""
    line = _rich("text").Text.assemble(*((shown(text), style) for text, style in parts))
    _console().print(line, soft_wrap=True)


def shown(text: str) -> str:
    """A text of whoever wrote it, harmless to a terminal: nothing in it moves the cursor or turns the direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_FOR_TERMINALS.get(one) or ("\ufffd" if unicodedata.category(one) == "Cc" else one) for one in text)


def print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_grid(
    headers: Sequence[str],
    rows: Iterable[Sequence[str | None]],
    folds: Sequence[int] = (0,),
    paint: Mapping[int, Mapping[str, str]] = NO_PAINT,
) -> None:
    """Rows without lines between them, less the columns of which nothing is known.

    Where the terminal is narrow, the columns of `folds` go on in the next line. Into a pipe or a file nothing is folded or
    cut, however long a name is. `paint` has the colours of words in a column, for terminals.
    """
    filled = [[shown(cell or "") for cell in row] for row in rows]
    used = [place for place in range(len(headers)) if place == 0 or any(row[place] for row in filled)]
    if not sys.stdout.isatty():
        _print_plain([[row[place] for place in used] for row in [list(headers), *filled]])
        return
    table, text = _rich("table").Table(box=None, pad_edge=False, header_style="bold"), _rich("text").Text
    for place in used:
        folding = place in folds
        least = _FOLDED_CHARS_MIN if folding else None
        table.add_column(headers[place], overflow="fold" if folding else "ellipsis", no_wrap=not folding, min_width=least)
    for row in filled:
        table.add_row(*(text(row[place], paint.get(place, {}).get(row[place], "")) for place in used))
    _console().print(table)


def print_facts(pairs: Iterable[tuple[str, str | None]]) -> None:
    """Names and values, less those of which nothing is known."""
    known = [(name, shown(value)) for name, value in pairs if value]
    if not sys.stdout.isatty():
        _print_plain([[name, value] for name, value in known])
        return
    table, text = _rich("table").Table(box=None, pad_edge=False, show_header=False), _rich("text").Text
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in known:
        # As it is: a bracket in a name is no markup.
        table.add_row(text(name), text(value))
    _console().print(table)


def _console() -> Any:
    return _rich("console").Console(highlight=False)


def _rich(module: str) -> Any:
    """Loaded when something is painted: what goes into a pipe, and most of what is said, is plain."""
    return import_module(f"rich.{module}")


def _print_plain(rows: list[list[str]]) -> None:
    widths = [
        max((cell_len(line) for row in rows for line in row[place].split("\n")), default=0) for place in range(_width(rows))
    ]
    for row in rows:
        cells = [cell.split("\n") for cell in row]
        for line in range(max(len(cell) for cell in cells)):
            parts = [cell[line] if line < len(cell) else "" for cell in cells]
            padded = (part + " " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True))
            typer.echo("  ".join(padded).rstrip())


def _width(rows: list[list[str]]) -> int:
    return len(rows[0]) if rows else 0


def when(at_ms: int | None) -> str:
    """A moment in UTC, to the second."""
    if at_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def stamp(moment: datetime | None) -> str:
    """A moment that knows its zone, as `when` writes it."""
    return "" if moment is None else when(int(moment.timestamp() * 1000))


def lasting(seconds: float | None) -> str:
    """A length of time in its two largest units."""
    if seconds is None:
        return ""
    left, parts = int(abs(seconds)), []
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit if unit != 'day' or count == 1 else 'days'}")
    return " ".join(parts[:2]) or "0 s"


def size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else decimal(size_bytes)


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
