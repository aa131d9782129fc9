"""The house rules that a program can check. Each ban names its replacement."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# The edges where Spark is met, and only there.
SPARK_FILES = (
    *(f"arco/fold/spark_{name}.py" for name in ("executors", "fold", "session", "tasks")),
    *(
        f"arco/servo/execute/spark_{name}.py"
        for name in (
            *(
                "arrow_writer",
                "checks",
                "code",
                "failures",
                "filters",
                "guard",
                "inputs",
                "maintenance",
                "observe",
                "own_rows",
                "plans",
            ),
            *("quarantine", "read", "rewrite", "sql", "task", "transforms", "types", "verdicts", "write"),
        )
    ),
)

# What may not be used, what to use instead, and the files that may all the same.
BANS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        r"\btime\.(time|time_ns|monotonic|perf_counter|sleep)\b",
        "a kernel Clock instead of the machine's",
        ("arco/kernel/clock.py", "arco_sim/__main__.py"),
    ),
    (r"\bdatetime\.(now|utcnow|today)\b|\bdate\.today\b", "a kernel Clock instead of today's date", ()),
    (
        r"\b(random|secrets)\.\w+\(|\bos\.urandom\b|\buuid\.uuid\d\b",
        "a kernel Entropy",
        ("arco/kernel/entropy.py", "arco_sim/choices.py"),
    ),
    (
        r"\bos\.(environ|getenv)\b",
        "settings from surface/cli/settings.py",
        # Where Java is, which Python the workers are and which address Spark binds has no other place than the environment.
        ("arco/surface/cli/settings.py", "arco/fold/spark_session.py", "arco_sim/workshop.py"),
    ),
    (
        r"\bthreading\b|\bThreadPoolExecutor\b|\bto_thread\b",
        "the storage port",
        # A notebook's own loop runs already: what is awaited needs another thread there. Spark's and DuckDB's calls block,
        # and so do the standard library's HTTP, PyArrow's reading of footers, and importing a project.
        (
            "arco/storage/local.py",
            "arco/storage/disk_threads.py",
            "arco/storage/folder_syncs.py",
            "arco/storage/last_answers.py",
            "arco/surface/http/server_state.py",
            "arco/surface/python/connecting.py",
            "arco/govern/token_services.py",
            "arco/fold/spark_threads.py",
            "arco/servo/execute/pipeline.py",
            "arco/servo/execute/isolated.py",
            "arco/servo/execute/task_main.py",
            "arco/read/files.py",
            "arco/read/reader.py",
            "arco/read/tail.py",
        ),
    ),
    (
        r"\basyncio\.sleep\(",
        "clock.sleep",
        (
            "arco/kernel/clock.py",
            "arco/storage/last_answers.py",
            "arco/storage/profile.py",
            "arco_sim/clients.py",
            "arco_sim/world.py",
        ),
    ),
    (r"(?<![.\w])print\(", "a console of the surface", ("arco_sim/__main__.py",)),
    (
        r"store\.delete\(",
        "a job of upkeep: only it deletes, on proof and after a grace period",
        # The self-test takes away what it wrote a moment before. The fold takes away what it has copied to the archive, if upkeep
        # has not (PROTOCOLS F3). The simulator tries what movers and collectors do.
        (
            "arco/upkeep/sweep.py",
            "arco/fold/moving.py",
            "arco/storage/selftest.py",
            "arco_sim/scenarios/create_and_collect.py",
            "arco_sim/scenarios/fold.py",
        ),
    ),
    (r"\bobstore\b", "the ObjectStore port", ("arco/storage/cloud.py",)),
    (r"\bimport pyspark\b|\bfrom pyspark\b", "a spark*.py file of fold, servo/execute or lineage", SPARK_FILES),
)

# Too long on purpose, each with its reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {"arco/surface/cli/main.py:serve": "a parameter and a line for each flag"}


def _name(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


@cache
def _code(path: Path) -> str:
    """The file without strings and comments, so that a ban is about what runs and not about what is said."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)


@pytest.mark.parametrize(("pattern", "instead", "allowed"), BANS, ids=[ban[1] for ban in BANS])
def test_what_is_banned_is_not_used(pattern: str, instead: str, allowed: tuple[str, ...]) -> None:
    found = [_name(path) for path in SOURCES if _name(path) not in allowed and re.search(pattern, _code(path))]
    assert not found, f"use {instead}: {pattern} is used in {found}"


def test_every_exception_to_a_ban_is_still_needed() -> None:
    stale = [
        (name, pattern)
        for pattern, _, allowed in BANS
        for name in allowed
        if not re.search(pattern, _code(ROOT / "src" / name))
    ]
    assert not stale


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = {_name(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert not {name: lines for name, lines in long.items() if lines > FILE_LINES_MAX and name not in LONG_FILES}


def test_every_function_fits_on_a_screen() -> None:
    long = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES_MAX
        and f"{_name(path)}:{node.name}" not in LONG_FUNCTIONS
    ]
    assert not long


def test_no_file_is_named_for_leftovers() -> None:
    leftovers = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert not [_name(path) for path in SOURCES if leftovers & set(_name(path).removesuffix(".py").split("/"))]


def test_init_files_hold_no_code() -> None:
    allowed = (ast.Expr, ast.ImportFrom, ast.Assign)
    assert not [
        _name(path)
        for path in SOURCES
        if path.name == "__init__.py"
        and _name(path) != "arco/__init__.py"  # what users import is looked up there when it is first used
        and not all(isinstance(node, allowed) for node in ast.parse(path.read_text()).body)
    ]


def test_every_module_says_what_it_is_for() -> None:
    assert not [_name(path) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text()))]


def test_importing_arco_loads_no_engine() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import arco, sys; print(*sorted(sys.modules))"], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"pyspark", "pyarrow", "duckdb", "obstore", "pyiceberg", "pandas", "numpy"}
    assert not heavy & {name.partition(".")[0] for name in loaded}


def test_the_lock_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"^--|https?://", lock, re.MULTILINE)
    assert lock.count("==") <= lock.count("--hash=sha256:")
