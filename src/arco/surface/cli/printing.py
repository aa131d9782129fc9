"""How commands print: for people, and for programs. What must never enter: what is printed."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

_UNBOUNDED_COLUMNS = 100_000
_FOLDED_CHARS_MIN = 8


def console() -> Console:
    """Where people look. Into a pipe or a file nothing is wrapped or cut, however long a name is."""
    width = None if sys.stdout.isatty() else _UNBOUNDED_COLUMNS
    return Console(highlight=False, width=width, soft_wrap=width is not None)


def say(text: str) -> None:
    """One sentence, as it is."""
    typer.echo(text)


def print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def grid(headers: Sequence[str], rows: Iterable[Sequence[str | None]], folds: Sequence[int] = (0,)) -> Table:
    """Rows without lines between them, less the columns of which nothing is known.

    Cells are shown as they are: a bracket in a name is no markup. Where the terminal is narrow, the columns of `folds` go on
    in the next line.
    """
    filled = [[cell or "" for cell in row] for row in rows]
    used = [place for place in range(len(headers)) if place == 0 or any(row[place] for row in filled)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in used:
        folding = place in folds
        least = _FOLDED_CHARS_MIN if folding else None
        table.add_column(headers[place], overflow="fold" if folding else "ellipsis", no_wrap=not folding, min_width=least)
    for row in filled:
        table.add_row(*(Text(row[place]) for place in used))
    return table


def facts(pairs: Iterable[tuple[str, str | None]]) -> Table:
    """Names and values, less those of which nothing is known."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(Text(name), Text(value))
    return table


def when(at_ms: int | None) -> str:
    """A moment in UTC, to the second."""
    if at_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else decimal(size_bytes)


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
