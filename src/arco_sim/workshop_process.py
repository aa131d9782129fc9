"""The process of a workshop: it has imported all there is, and runs each planted bug in a child that imports what it touches.

A child begins as a copy of this process, forgets the module that was changed and every module that imports it, and runs what
must notice. So a planted bug costs what it changes, not a new interpreter. A request is a line of JSON on the standard input,
the answer a line on the standard output: how the child ended, and what it said.
"""

import ast
import gc
import json
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGES = ("arco", "arco_sim")
_DOES_NOT_RUN = 9


def main() -> None:
    _import_all()
    importers = _importers()
    # Nobody collects what is here already: the pages of a child stay those of its parent.
    gc.collect()
    gc.freeze()
    _say({"ready": True})
    for line in sys.stdin:
        _say(_in_a_child(json.loads(line), importers))


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _import_all() -> None:
    import_module("pytest")
    import_module("pytest_timeout")
    for package in _PACKAGES:
        for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                import_module(found.name)


def _importers() -> dict[str, set[str]]:
    """Who imports a module, by their own text, wherever in it."""
    importers: dict[str, set[str]] = {}
    for name, module in _ours():
        for wanted in _wanted(name, Path(str(module.__file__)).read_text()):
            importers.setdefault(wanted, set()).add(name)
    return importers


def _ours() -> list[tuple[str, ModuleType]]:
    return [(name, module) for name, module in sys.modules.items() if name.partition(".")[0] in _PACKAGES]


def _wanted(name: str, text: str) -> Iterator[str]:
    """What a module imports: modules, names of modules, the packages that it is in."""
    yield from _with_packages(name.rpartition(".")[0])
    for node in _run(ast.parse(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield from _with_packages(one.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from _with_packages(node.module)
            yield from (f"{node.module}.{one.name}" for one in node.names)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a module but what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _run(node)


def _with_packages(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _in_a_child(request: dict[str, Any], importers: dict[str, set[str]]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            _be_a_child(request, importers, said.fileno())
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return {"code": os.waitstatus_to_exitcode(status), "said": said.read().decode(errors="replace")}


def _be_a_child(request: dict[str, Any], importers: dict[str, set[str]], said: int) -> None:
    code = _DOES_NOT_RUN
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        _forget(request["module"], importers)
        code = _run_test(request["test"]) if request["test"] else _run_seeds(request["scenario"], request["seeds"])
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it, and the child must end here
        sys.stdout.write(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        # Not through the interpreter's own end: Arrow's threads may still be there, and its library then aborts the process.
        os._exit(code)


def _forget(changed: str, importers: dict[str, set[str]]) -> None:
    forgotten, waiting = set[str](), [changed]
    while waiting:
        name = waiting.pop()
        if name not in forgotten:
            forgotten.add(name)
            waiting += importers.get(name, ())
    for name in forgotten & sys.modules.keys():
        package, _, last = name.rpartition(".")
        del sys.modules[name]
        if package in sys.modules:
            vars(sys.modules[package]).pop(last, None)


def _run_seeds(name: str, seeds: list[int]) -> int:
    """The first of the seeds that breaks a promise, and the promise."""
    run_seed = import_module("arco_sim.runner").run_seed
    scenario = import_module("arco_sim.scenarios.registry").SCENARIOS[name]
    for seed in seeds:
        result = run_seed(scenario, seed)
        if result.failed:
            sys.stdout.write(f"{seed}\t{result.violations[0]}")
            break
    return 0


def _run_test(arguments: list[str]) -> int:
    return int(import_module("pytest").main(arguments))


if __name__ == "__main__":
    main()
