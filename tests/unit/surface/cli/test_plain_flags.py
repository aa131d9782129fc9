"""Flags of text are read without Typer's validation, and nobody can tell, but by the clock."""

import os
import subprocess
import sys
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from arco.surface.cli.shortening import shortened

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def _main() -> None:
    """Keep subcommands."""


@app.command()
def show(
    name: Annotated[str, typer.Argument()],
    words: Annotated[list[str] | None, typer.Argument()] = None,
    text: Annotated[str | None, typer.Option(envvar="PLAIN_TEXT")] = None,
    folder: Annotated[str, typer.Option("-f")] = ".",
    several: Annotated[list[str] | None, typer.Option(envvar="PLAIN_SEVERAL")] = None,
    number: Annotated[int, typer.Option(min=1)] = 4,
    pause: Annotated[float, typer.Option()] = 1.5,
    choice: Annotated[Literal["a", "b"], typer.Option()] = "a",
    loud: Annotated[str | None, typer.Option(callback=lambda value: value and value.upper())] = None,
    flag: Annotated[bool, typer.Option("--flag")] = False,
) -> None:
    print(repr((name, words, text, folder, several, number, pause, choice, loud, flag)))


GIVEN = [
    ("one",),
    ("one", "two", "three"),
    ("",),
    (),
    ("one", "--text", "x", "--text", ""),
    ("one", "--text"),
    ("one", "--several", "x", "--several", "", "-f", "ü"),
    ("one", "--number", "7"),
    ("one", "--number", "0"),
    ("one", "--number", "4"),
    ("one", "--number", "x"),
    ("one", "--pause", "2"),
    ("one", "--choice", "b"),
    ("one", "--choice", "c"),
    ("one", "--loud", "x"),
    ("one", "--flag"),
    ("one", "--flag", "--nothing"),
    ("--help",),
]


@pytest.mark.parametrize("given", GIVEN, ids=" ".join)
@pytest.mark.parametrize("environment", [{}, {"PLAIN_TEXT": "a b", "PLAIN_SEVERAL": "a b"}], ids=["", "environment"])
def test_values_and_refusals_are_what_typer_makes_of_them(given: tuple[str, ...], environment: dict[str, str]) -> None:
    plain, typers = (CliRunner().invoke(one, ["show", *given], env=environment) for one in (shortened(app, ["show"]), app))
    assert (plain.exit_code, plain.output) == (typers.exit_code, typers.output)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--help",), False),
        (("plan", "--help"), False),
        (("plan", "orders", "--partition", "date=2025-01-01", "--project", "/nowhere", "--root", "lake"), False),
        (("partitions", "list", "orders", "--project", "/nowhere", "--root", "lake"), False),
        (("run", "--parallel", "7", "--project", "/nowhere"), True),
    ],
)
def test_the_validation_library_is_loaded_where_something_is_validated(words: tuple[str, ...], expected: bool) -> None:
    code = (
        f"import sys; sys.argv = ['arco', *{words!r}]; from arco.surface.cli.main import run\n"
        "try: run()\nexcept SystemExit: pass\n"
        "print('pydantic' in sys.modules)"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    assert done.stdout.splitlines()[-1] == str(expected)
