"""The fingerprint of an asset's code: changes when what it computes may change, and stays when only its looks do.

It covers the function as parsed, without comments, docstrings and decorators, and everything of the project's own that the
function reaches by name: other functions, classes and plain constants, however deep. What lies in installed packages is
covered by the code version of the deployment, not here.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from arco.kernel.fingerprint import fingerprint

_PLAIN = (str, bytes, int, float, bool, type(None))


def of_function(function: Callable[..., Any]) -> str:
    parts: dict[str, str] = {}
    _reach(function, parts)
    return fingerprint("asset code", *(f"{name}\n{text}" for name, text in sorted(parts.items())))


def of_text(text: str) -> str:
    """For SQL: white space and comments at the ends of lines do not count."""
    lines = (line.split("--")[0].strip() if "'" not in line else line.strip() for line in text.splitlines())
    return fingerprint("asset sql", "\n".join(line for line in lines if line))


def _reach(thing: Any, parts: dict[str, str]) -> None:
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(thing))}"
    if name in parts:
        return
    parts[name] = _text(thing)
    code = getattr(thing, "__code__", None)
    if code is None:
        return
    scope = {**getattr(thing, "__globals__", {}), **_closure(thing)}
    for used in sorted(_names(code)):
        if used in scope:
            _take(used, scope[used], thing, parts)


def _take(name: str, value: Any, user: Any, parts: dict[str, str]) -> None:
    core = getattr(value, "function", value)
    if isinstance(value, _PLAIN) or _is_plain_container(value):
        parts[f"constant {user.__module__}.{name}"] = _said(value)
    elif isinstance(core, ModuleType):
        return
    elif (inspect.isfunction(core) or inspect.isclass(core)) and _is_own(core):
        _reach(core, parts)


def _is_own(thing: Any) -> bool:
    """Whether something belongs to the project: not to Python, not to an installed package, not to Arco."""
    top = str(thing.__module__).partition(".")[0]
    if top == "arco" or top in sys.stdlib_module_names:
        return False
    try:
        source = inspect.getsourcefile(thing) or ""
    except TypeError:
        return False
    return "site-packages" not in source and "dist-packages" not in source


def _text(thing: Any) -> str:
    """The source as a tree, so that only what matters counts."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        code = getattr(thing, "__code__", None)
        return repr(thing) if code is None else f"{code.co_code.hex()} {code.co_consts!r}"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
            if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names) | set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    return {
        name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells, strict=True) if _is_set(cell)
    }


def _is_set(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _said(value: Any) -> str:
    """A constant as text. The order of a set depends on the process, so it is sorted."""
    if isinstance(value, set | frozenset):
        return f"set {sorted(map(_said, value))}"
    if isinstance(value, dict):
        return f"dict {[(_said(key), _said(one)) for key, one in value.items()]}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {list(map(_said, value))}"
    return repr(value)


def _is_plain_container(value: Any) -> bool:
    if isinstance(value, tuple | list | frozenset | set):
        return all(isinstance(one, _PLAIN) or _is_plain_container(one) for one in value)
    if isinstance(value, dict):
        return all(
            isinstance(key, _PLAIN) and (isinstance(one, _PLAIN) or _is_plain_container(one)) for key, one in value.items()
        )
    return False
