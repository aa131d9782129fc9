"""What `import arco` gives: every name from its room, when it is first used, and no engine with it."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import arco

ENGINES = {
    "sqlglot",
    "pyiceberg",
    "pyarrow",
    "pyspark",
    "duckdb",
    "obstore",
    "pydantic",
    "pandas",
    "numpy",
    "typer",
    "asyncio",
}


def loaded_by(code: str) -> set[str]:
    """The modules of a fresh process after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_type_checkers_see_what_programs_get() -> None:
    tree = ast.parse(Path(str(arco.__file__)).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        str(node.module): tuple(one.name for one in node.names) for node in block.body if isinstance(node, ast.ImportFrom)
    }
    assert seen == arco._NAMES
    assert sorted(arco._ROOMS) == sorted(arco.__all__)


@pytest.mark.parametrize("name", arco.__all__)
def test_every_name_is_that_of_its_room(name: str) -> None:
    assert getattr(arco, name) is getattr(import_module(arco._ROOMS[name]), name)
    assert name in dir(arco)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="'arco' has no attribute 'assets'"):
        _ = arco.assets
    with pytest.raises(ImportError):
        exec("from arco import assets")


def test_importing_arco_loads_nothing_of_it() -> None:
    assert {name for name in loaded_by("import arco") if name.startswith("arco.")} == set()


def test_writing_assets_loads_no_engine() -> None:
    names = ", ".join(name for name in arco.__all__ if name != "connect")
    loaded = loaded_by(f"from arco import {names}")
    assert tops(loaded) & ENGINES == set()
    assert not [name for name in loaded if name.startswith(("arco.catalog", "arco.storage", "arco.surface"))]


def test_help_loads_no_engine() -> None:
    loaded = loaded_by(
        "sys.argv = ['arco', '--help']\nfrom arco.surface.cli.main import run\ntry: run()\nexcept SystemExit: pass"
    )
    assert tops(loaded) & (ENGINES - {"typer"} | {"rich", "msgspec"}) == set()


def test_the_helpers_of_tests_load_no_spark() -> None:
    assert "pyspark" not in loaded_by("from arco.testing import assert_same_rows, local_spark, run")
