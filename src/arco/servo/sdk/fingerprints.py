"""The fingerprint of an asset's code: changes when what it computes may change, and stays when only its looks do.

It covers the function as parsed, without comments, docstrings and Arco's own decorators, and everything of the project's own
that the function reaches by name, however deep: functions with what decorates them, classes with their methods, constants and
other values, by themselves or through a module (`helpers.clean`). What lies in installed packages is covered by the code version
of the deployment, not here. What is only found while the code runs (`getattr`, files that it reads) is not covered at all.
"""

import ast
import dis
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import CodeVersionId
from arco.servo.sdk.authoring import Asset
from arco.servo.sdk.plain_values import is_plain, spelled

_BY_GLOBAL_NAME = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_FOREIGN_VALUES = "pyspark.sql.types"  # what they are is what they say
_SQL_PARTS = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<space>(?:\s|--[^\n]*|/\*(?!\+).*?\*/)+)""", re.DOTALL
)


def of_function(function: Callable[..., Any]) -> str:
    walk = _Walk()
    walk.reach(function)
    return fingerprint("asset code", *walk.texts())


def of_text(text: str) -> str:
    """For SQL: comments and white space outside of quotes do not count."""
    said = _SQL_PARTS.sub(lambda found: found["quoted"] or " ", text)
    return fingerprint("asset sql", said.strip())


def of_project(codes: Mapping[str, str]) -> CodeVersionId:
    """The version of a project's code: of the fingerprints of its assets, by their keys."""
    version = fingerprint("code version", *(f"{key} {codes[key]}" for key in sorted(codes)))
    return CodeVersionId(f"code_{version[:16]}")


class _Walk:
    """Everything that was reached so far: texts by name. Two things of one name, such as lambdas, both count."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}
        self._seen: dict[int, Any] = {}
        """By identity, and kept, so that no identity is used again meanwhile."""
        self._asked: set[tuple[str, frozenset[str]]] = set()

    def texts(self) -> list[str]:
        return [f"{name}\n{text}" for name, texts in sorted(self._found.items()) for text in sorted(texts)]

    def reach(self, thing: Any) -> None:
        """A function or a class, and what it uses."""
        if not self._is_new(thing):
            return
        core = inspect.unwrap(thing)
        if core is not thing and self._is_new(core):
            # A function that another one stands for, such as a UDF: what was said when it was wrapped counts.
            around = {word: value for word, value in vars(thing).items() if word != "__wrapped__"}
            self._add(_name(core), f"wrapped {self._said(around)}")
        scope = _scope(core)
        tree = _tree(core)
        if tree is None:
            self._add(_name(core), _code_text(core))
        else:
            self._add(_name(core), ast.dump(_bare(tree, scope)))
            self._use(_Names(_names_around(tree), set(), set()), scope, core)
        for code, inner in _codes(core):
            self._use(_names_in(code), {**scope, **inner}, core)
        defaults = (getattr(core, "__defaults__", None), getattr(core, "__kwdefaults__", None))
        if any(defaults) and tree is not None:
            self._add(_name(core), f"defaults {self._said(defaults)}")

    def _use(self, names: "_Names", scope: Mapping[str, Any], user: Any) -> None:
        for name in names.looked_up & scope.keys():
            self._take(f"{_name(user)} {name}", scope[name], names.asked)
        for name in names.imported:
            found = sys.modules.get(name) or sys.modules.get(f"{scope.get('__package__')}.{name}")
            if found is not None:
                self._module(found, names.asked)

    def _take(self, name: str, value: Any, asked: set[str]) -> None:
        if isinstance(value, ModuleType):
            self._module(value, asked)
        elif is_plain(value) or not _is_foreign_code(value):
            self._add(f"value {name}", self._said(value))

    def _module(self, module: ModuleType, asked: set[str]) -> None:
        """What is asked of a module of the project, as far as it has it."""
        mark = (module.__name__, frozenset(asked))
        if mark in self._asked or not _is_own(module.__name__, module):
            return
        self._asked.add(mark)
        for word in asked & vars(module).keys():
            self._take(f"{module.__name__} {word}", vars(module)[word], asked)

    def _said(self, value: Any) -> str:
        """A value as text. What it is made of is reached on the way."""
        if is_plain(value):
            return spelled(value)
        match value:
            case Asset() if value.function is not None:
                self.reach(value.function)
                return _name(value.function)
            case partial():
                return f"partial {self._said((value.func, value.args, value.keywords))}"
            case Enum():
                return f"{self._said(type(value))}.{value.name}"
            case FunctionType() | type():
                if not _is_foreign_code(value):
                    self.reach(value)
                return _name(value)
            case list() | tuple():
                return f"{type(value).__name__} {[self._said(one) for one in value]}"
            case set() | frozenset():
                return f"set {sorted(self._said(one) for one in value)}"
            case Mapping():
                return f"dict {[(self._said(key), self._said(one)) for key, one in value.items()]}"
            case _ if type(value).__module__ == _FOREIGN_VALUES:
                return repr(value)
            case _:
                return self._object(value)

    def _object(self, value: Any) -> str:
        kind = type(value)
        is_own = _is_own(kind.__module__, kind)
        if not (is_own or is_dataclass(value)) or not self._is_new(value):
            return _name(kind)
        if is_own:
            self.reach(kind)
        words = [one.name for one in fields(value)] if is_dataclass(value) else sorted(getattr(value, "__dict__", ()))
        return f"{_name(kind)} {[(word, self._said(getattr(value, word))) for word in words]}"

    def _is_new(self, thing: Any) -> bool:
        if id(thing) in self._seen:
            return False
        self._seen[id(thing)] = thing
        return True

    def _add(self, name: str, text: str) -> None:
        self._found.setdefault(name, set()).add(text)


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


# Whose it is


def _is_foreign_code(value: Any) -> bool:
    """Whether something is code of an installed package, of Python's own or of Arco's: not looked into."""
    if not isinstance(value, FunctionType | type):
        return (
            callable(value) and not isinstance(value, Asset | partial) and not _is_own(type(value).__module__, type(value))
        )
    core = inspect.unwrap(value) if isinstance(value, FunctionType) else value
    return not _is_own(core.__module__, core)


def _is_own(module: str | None, thing: Any) -> bool:
    """Whether something belongs to the project."""
    top = str(module).partition(".")[0]
    if top == "arco" or top in sys.stdlib_module_names:
        return False
    try:
        source = inspect.getsourcefile(thing) or ""
    except TypeError:
        return False
    except OSError:
        return top == "__main__"  # of a session without files
    return "site-packages" not in source and "dist-packages" not in source


# What is written


def _tree(thing: Any) -> ast.AST | None:
    """The source as a tree; None where there is none of it alone."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return None
    return tree.body[0] if tree.body else None


def _bare(tree: ast.AST, scope: Mapping[str, Any]) -> ast.AST:
    """A tree without what does not count: docstrings, and Arco's decorators, whose options are looked at by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = [one for one in node.decorator_list if not _is_arcos(one, scope)]
            if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _is_arcos(decorator: ast.expr, scope: Mapping[str, Any]) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        found = getattr(scope.get(called.value.id), called.attr, None)
    else:
        found = scope.get(called.id) if isinstance(called, ast.Name) else None
    return str(getattr(found, "__module__", "")).partition(".")[0] == "arco"


def _names_around(tree: ast.AST) -> set[str]:
    """Names that are looked up when something is defined: in decorators, and in a class outside of its methods."""
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set()
    looked_at: list[ast.AST] = [*tree.decorator_list]
    if isinstance(tree, ast.ClassDef):
        methods = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        looked_at += [*tree.bases, *(one for method in methods for one in method.decorator_list)]
        looked_at += [one for one in tree.body if one not in methods]
    return {node.id for part in looked_at for node in ast.walk(part) if isinstance(node, ast.Name)}


# What is run


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that code looks up around it, the words that it asks of what it finds, and the modules it imports."""

    looked_up: set[str]
    asked: set[str]
    imported: set[str]


def _scope(thing: Any) -> dict[str, Any]:
    if isinstance(thing, type):
        return dict(vars(sys.modules.get(thing.__module__, thing)))
    return dict(getattr(thing, "__globals__", {}))


def _codes(thing: Any) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The code of a function, or of the methods of a class, each with what it closes over."""
    members = [thing] if not isinstance(thing, type) else list(vars(thing).values())
    for member in members:
        found = [member.fget, member.fset] if isinstance(member, property) else [getattr(member, "__func__", member)]
        for one in found:
            core = inspect.unwrap(one) if callable(one) else None
            if isinstance(core, FunctionType):
                yield core.__code__, _closure(core)


def _names_in(code: CodeType) -> _Names:
    found = _Names(set(code.co_freevars), set(), set())
    for one in dis.get_instructions(code):
        if isinstance(one.argval, CodeType):
            inner = _names_in(one.argval)
            found.looked_up.update(inner.looked_up)
            found.asked.update(inner.asked)
            found.imported.update(inner.imported)
        elif one.opname in _BY_GLOBAL_NAME:
            found.looked_up.add(str(one.argval))
        elif one.opname == "IMPORT_NAME":
            found.imported.add(str(one.argval))
        elif one.opcode in dis.hasname:
            found.asked.add(str(one.argval))
    return found


def _code_text(thing: Any) -> str:
    """Code without its source: what it does, which names it uses, and its constants."""
    return " ".join(_said_code(code) for code, _ in _codes(thing))


def _said_code(code: CodeType) -> str:
    constants = [_said_code(one) if isinstance(one, CodeType) else spelled(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def _closure(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_set(cell)}


def _is_set(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
