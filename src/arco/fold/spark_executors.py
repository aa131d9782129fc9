"""What the executors of a cluster have, asked before anything runs on them: Python, packages, and the lake.

A task that needs what is not there fails in the middle of a run, with a page of somebody else's trace. A project of queries
needs no Python there at all, so that what is missing is told and not refused; only a lake that executors do not see is: they
would write its files to their own disks.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from arco.fold.spark_session import Session
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

NEEDED = ("arco", "msgspec", "obstore", "pyarrow", "pyiceberg")
_ASKED = 8
_WANTED_FOR = "functions of the project in rows, outputs with lists or maps, buckets of texts and the fold need it"


@dataclass(frozen=True, slots=True)
class Executor:
    """What one Python on an executor says of itself."""

    host: str
    python: str
    missing: tuple[str, ...]
    sees_lake: bool


def notes_about(session: Session, root: str) -> tuple[str, ...]:
    """What is to be said of the executors, in one line each. A root that is a folder must be theirs, too."""
    folder = "" if "://" in root or not root else str(Path(root).resolve())
    try:
        found = asked(session, NEEDED, folder)
    except (PySparkException, Py4JError) as error:
        return (f"no Python runs on the executors: {_reason(str(error))}; {_WANTED_FOR}; {_where_python(session)}",)
    blind = sorted({one.host for one in found if not one.sees_lake})
    if blind:
        raise InvalidInput(
            f"the executors on {', '.join(blind)} have no folder {clip(folder, 200)}",
            hint="take a root that all of them reach: a bucket, or a folder that they share",
        )
    lacking = sorted({word for one in found for word in one.missing})
    if not lacking:
        return ()
    which = sorted({f"{one.python} on {one.host}" for one in found if one.missing})
    said = f"{', '.join(lacking)} cannot be imported by {clip('; '.join(which), 300)}: {_WANTED_FOR}"
    return (f"{said}; install arco there, or {_where_python(session)}",)


def asked(session: Session, modules: Sequence[str], folder: str) -> list[Executor]:
    """Ask some tasks what they have. None of them imports anything of ours: it may not be there."""
    wanted = tuple(modules)

    def answer(_: int) -> str:
        import importlib.util  # noqa: PLC0415 - there, not here
        import json as their_json  # noqa: PLC0415
        import os  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        missing = [name for name in wanted if importlib.util.find_spec(name) is None]
        sees = not folder or os.path.isdir(folder)  # noqa: PTH112
        return their_json.dumps([platform.node(), sys.executable, missing, sees])

    answer.__annotations__.clear()  # PySpark would warn of hints that it cannot use
    # Not as batches of Arrow: it may not be there either.
    ask = f.udf(answer, StringType(), useArrow=False).asNondeterministic()
    rows = session.spark.range(0, _ASKED, 1, _ASKED).select(ask("id").alias("said")).collect()
    said = {row["said"] for row in rows}
    return [Executor(host, python, tuple(missing), sees) for host, python, missing, sees in map(json.loads, sorted(said))]


def _where_python(session: Session) -> str:
    if session.is_connect:
        return "start the Spark Connect server with PYSPARK_PYTHON set to a Python that has it"
    return 'name a Python that has it: "spark.pyspark.python" in arco.toml, under [spark] conf'


def _reason(text: str) -> str:
    """Spark's own sentence about a Python that is missing or another one."""
    marks = ("PYTHON_VERSION_MISMATCH", "Cannot run program", "ModuleNotFoundError", "No module named")
    lines = text.splitlines()
    found = next((line for line in lines if any(mark in line for mark in marks)), lines[0] if lines else text)
    return clip(found.strip(), 300)
