"""`arco spark sql`, `shell` and `submit`: plain Spark, with the lake at hand."""

import asyncio
import code
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import arco
from arco.fold.spark_home import SparkHome
from arco.fold.spark_jars import spark_home
from arco.fold.spark_session import Session, start_settings
from arco.kernel.errors import InvalidInput
from arco.servo.execute.spark_sql import Answer, answered
from arco.surface.cli.printing import print_grid, print_json, say_aside
from arco.surface.cli.settings import environment
from arco.surface.cli.spark_lake import CATALOG, Asked, Attached, attached, need_catalog


@contextmanager
def _session(found: Attached) -> Iterator[Session]:
    home = SparkHome(
        found.spark,
        found.place,
        found.settings.known,
        starting=lambda: say_aside("starting Spark …"),
        told=lambda note: say_aside(f"arco: {note}"),
    )
    try:
        yield asyncio.run(home.session())
    finally:
        asyncio.run(home.stop())


def sql(asked: Asked, statement: str, *, rows_max: int, json: bool) -> None:
    """Run one statement, and print what it gives."""
    with attached(asked) as found:
        need_catalog(found)
        with _session(found) as session:
            answer = answered(session.spark, statement, rows_max)
    if json:
        print_json({"columns": answer.columns, "rows": _documents(answer), "more": answer.more})
        return
    if answer.columns:
        print_grid(answer.columns, [[_cell(value) for value in row] for row in answer.rows])
    if answer.more:
        say_aside(f"there are more than {rows_max:,} rows: --limit N prints more of them")


def _documents(answer: Answer) -> list[dict[str, Any]]:
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


# A prompt


class _Prompt(code.InteractiveConsole):
    """Python's own prompt. It remembers whether something failed, for a program that is piped into it."""

    failed = False

    def showtraceback(self) -> None:
        self.failed = True
        super().showtraceback()

    def showsyntaxerror(self, filename: str | None = None, **more: Any) -> None:
        self.failed = True
        super().showsyntaxerror(filename, **more)


def shell(asked: Asked) -> int:
    """A prompt with `spark` and `lake`; a program, if one is piped in."""
    with attached(asked) as found:
        for note in found.notes:
            say_aside(f"arco: {note}")
        with _session(found) as session:
            lake = arco.connect(found.settings.root, found.warehouse, **found.settings.options)
            names = {"__name__": "__console__", "__doc__": None, "spark": session.spark, "lake": lake}
            prompt = _Prompt(names)
            if sys.stdin.isatty():
                _complete(names)
                prompt.interact(banner=_banner(found, session), exitmsg="")
                return 0
            prompt.runsource(sys.stdin.read(), "<stdin>", "exec")
            return int(prompt.failed)


def _banner(found: Attached, session: Session) -> str:
    tables = f"spark.table('NAMESPACE.TABLE') reads catalog {CATALOG}; " if found.has_catalog else ""
    return (
        f"Spark {session.spark.version} at {found.spark.place.shown}, lake {found.settings.root}\n"
        f"{tables}lake.tables() lists tables, lake.table('…').to_spark(spark) pins one; Ctrl-D ends"
    )


def _complete(names: dict[str, Any]) -> None:
    try:
        readline, completer = import_module("readline"), import_module("rlcompleter")
    except ImportError:
        return  # not every Python has it
    readline.set_completer(completer.Completer(names).complete)
    readline.parse_and_bind("tab: complete")


# A program


def submit(asked: Asked, program: str, arguments: list[str]) -> int:
    """Run a program by spark-submit, with the lake's settings. What it returns is what we do."""
    if not Path(program).is_file():
        raise InvalidInput(f"there is no file {program}", hint="name a program: arco spark submit job.py …")
    with attached(asked) as found:
        for note in found.notes:
            say_aside(f"arco: {note}")
        if found.spark.is_connect:
            return _run([sys.executable, program, *arguments], SPARK_REMOTE=found.spark.master)
        words = start_settings(found.spark, found.place, found.settings.known)
        with tempfile.NamedTemporaryFile("w", prefix="arco-spark-", suffix=".conf") as file:
            # In a file of ours alone: a command line is read by everybody on the machine.
            file.writelines(f"{word}={_escaped(value)}\n" for word, value in words.items())
            file.flush()
            command = [str(spark_home() / "bin" / "spark-submit"), "--properties-file", file.name, program, *arguments]
            return _run(command, SPARK_HOME=str(spark_home()))


def _run(command: list[str], **more: str) -> int:
    return subprocess.run(command, env=environment(**more), check=False).returncode  # noqa: S603 - what the person asks for


def _escaped(value: str) -> str:
    """A value as Java's files of properties have it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
