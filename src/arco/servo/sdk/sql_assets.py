"""SQL assets: a query in a file, with a short header that says what a decorator would.

    /*
    partitions = [{ name = "date", kind = "daily", start = 2025-01-01 }]
    checks = [{ not_null = "order_id" }, { row_count = { min = 1 }, severity = "warning" }]
    */
    SELECT … FROM orders_raw …

The header is TOML inside the first comment; everything in it is optional. The file's name is the asset's. What it reads is found
in the query itself: every table that it names and does not define.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.quality import builtin
from arco.quality.checks import Check
from arco.quality.gates import GatingPolicy
from arco.servo.partitions.axes import Axis, TimeAxis
from arco.servo.sdk.authoring import OPTIONS, Written, options
from arco.servo.sdk.definitions import AssetKind, CallSite, Retention, Retry
from arco.servo.sdk.dimensions import daily, dynamic, hourly, monthly, static, weekly
from arco.servo.sdk.inputs import Input, changes_of, every, last, same, window

_SQL_HINT = "mend it; it is read as Spark SQL"
_LINE = re.compile(r"at line (\d+)")
_TOKEN = re.compile(r" but got <Token .*>")
_TIMES = {"hourly": hourly, "daily": daily, "weekly": weekly, "monthly": monthly}
_TWO_TOGETHER = ("mode", "key")
"""What neither says alone."""
_TABLES: Mapping[str, Callable[..., Any]] = {"retention": Retention, "retry": Retry, "gate": GatingPolicy}
BOUNDS = ("partition_start", "partition_end")
"""What a query may name without a setting: the bounds of the partitions that are made, half open."""
_MAPPINGS = {"same": same, "every": every, "last": last, "changes": changes_of}


def read_sql_asset(path: Path) -> Written:
    """The asset of one file."""
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}:1: the file is not text in UTF-8", hint="save it as such") from error
    header, query, line = _split(text, path)
    where = CallSite(str(path), line)
    with _placed(path, text):
        given = _options(header)
        parameters = dict(_table(header, "parameters"))
        tree = parsed(query, where)
        _check_placeholders(tree, parameters, where)
        _check_bounds(tree, given.get("partitions", ()), where)
        _check_versions(tree, where)
        return Written(
            name=str(header.get("name", path.stem)),
            kind=AssetKind.SQL,
            where=where,
            sql=query,
            inputs=_inputs(tree, _table(header, "inputs")),
            parameters=parameters,
            **_together(given),
        )


@contextmanager
def _placed(path: Path, text: str) -> Iterator[None]:
    """What is wrong with a header, with its line: that of the option, where it is known which."""
    try:
        yield
    except _WrongOption as wrong:
        error = wrong.error
        raise InvalidInput(f"{path}:{_line_of(wrong.option, text)}: {error.message}", hint=error.hint) from error
    except InvalidInput as error:
        if error.message.startswith(f"{path}:"):
            raise
        raise InvalidInput(f"{path}:{_line_of('', text)}: {error.message}", hint=error.hint) from error


class _WrongOption(Exception):
    """What is wrong with one option of a header; never seen outside this file."""

    def __init__(self, option: str, error: InvalidInput) -> None:
        super().__init__(error.message)
        self.option, self.error = option, error


def _line_of(option: str, text: str) -> int:
    """The line that an option of the header is written in; that of the header, if it is not found."""
    begins = len(text) - len(text.lstrip())
    found = re.search(rf"^(?:\s*/\*)?\s*{re.escape(option)}\s*=", text, re.MULTILINE) if option else None
    # White space before the option may begin on the line before it.
    at = begins if found is None else found.end()
    return text[:at].count("\n") + 1


def _check_placeholders(tree: exp.Query, parameters: Mapping[str, Any], where: CallSite) -> None:
    """Every `:name` of the query is a setting of the header, or a bound of the partitions."""
    for found in tree.find_all(exp.Placeholder):
        name = str(found.name)
        if name and name not in parameters and name not in BOUNDS:
            known = ", ".join(f":{word}" for word in (*sorted(parameters), *BOUNDS))
            raise InvalidInput(
                f"{where}: the query has :{clip(name)}, and the header has no such parameter", hint=f"there are {known}"
            )


def _check_bounds(tree: exp.Query, axes: Iterable[Axis], where: CallSite) -> None:
    """Bounds are those of a dimension of time."""
    if not any(isinstance(axis, TimeAxis) for axis in axes):
        for found in tree.find_all(exp.Placeholder):
            if found.name in BOUNDS:
                raise InvalidInput(
                    f"{where}: the query has :{found.name}, and it is not partitioned by time",
                    hint='partitions = [{ name = "date", kind = "daily", start = 2025-01-01 }]',
                )


def _check_versions(tree: exp.Query, where: CallSite) -> None:
    """Which version is read is the plan's to say: otherwise nobody would know what the table was made of."""
    for table in tables_read(tree):
        if table.args.get("version") is not None:
            raise InvalidInput(
                f"{where}: the query reads a version of {clip(table.name)} of its own choice, and inputs are pinned by the plan",
                hint="leave out VERSION AS OF and TIMESTAMP AS OF",
            )


def _split(text: str, path: Path) -> tuple[dict[str, Any], str, int]:
    """The header, the query, and the line that the query begins in."""
    stripped = text.lstrip()
    if not stripped.startswith("/*"):
        return {}, text.strip().rstrip(";"), text[: len(text) - len(stripped)].count("\n") + 1
    comment, ended, query = stripped[2:].partition("*/")
    if not ended:
        raise InvalidInput(f"{path}:1: the header has no end", hint="close it with */")
    begins = len(text) - len(stripped) + 2
    try:
        header = tomllib.loads(comment)
    except tomllib.TOMLDecodeError as error:
        line = text[:begins].count("\n") + int((_LINE.search(str(error)) or ["", "1"])[1])
        raise InvalidInput(
            f"{path}:{line}: the header is not TOML: {error}", hint="write name = value, a line each"
        ) from error
    line = text[: len(text) - len(query.lstrip())].count("\n") + 1
    return header, query.strip().rstrip(";"), line


def _options(header: Mapping[str, Any]) -> dict[str, Any]:
    given = {word: value for word, value in header.items() if word not in {"name", "inputs", "parameters"}}
    unknown = sorted(set(given) - OPTIONS)
    if unknown:
        known = ", ".join(sorted({*OPTIONS, "parameters"}))
        raise _WrongOption(unknown[0], InvalidInput(f"the header has no option {unknown[0]!r}", hint=f"one of {known}"))
    for word, value in given.items():
        with _of(word, value):
            given[word] = _option(word, value)
            if word not in _TWO_TOGETHER:
                options({word: given[word]}, "")
    return given


@contextmanager
def _of(word: str, value: Any) -> Iterator[None]:
    """What is wrong is wrong with this option. Python's own words say nothing to whoever wrote a query."""
    try:
        yield
    except InvalidInput as error:
        raise _WrongOption(word, error) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        wrong = InvalidInput(f"{word} = {clip(repr(value))} is not understood", hint="docs/projects.md has all options")
        raise _WrongOption(word, wrong) from error


def _together(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options; what is wrong with none of them alone is wrong with the mode and its key."""
    with _of(next((word for word in _TWO_TOGETHER if word in given), ""), None):
        return options(given, "")


def _table(header: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    found = header.get(word, {})
    if not isinstance(found, Mapping):
        raise _WrongOption(word, InvalidInput(f"{word} = {found!r} names nothing", hint=f"write {word} = {{ name = … }}"))
    return found


def _option(word: str, value: Any) -> Any:
    """An option as the decorator takes it."""
    if word == "partitions":
        return [_dimension(one) for one in _each(word, value, '{ name = "date", kind = "daily", start = 2025-01-01 }')]
    if word == "checks":
        return [_check(one) for one in _each(word, value, '{ not_null = "order_id" }')]
    if word in _TABLES and isinstance(value, Mapping):
        return _called(word, _TABLES[word], (), value)
    return value


def _each(word: str, value: Any, example: str) -> list[Mapping[str, Any]]:
    """The tables of an option that is a list of them; one alone may stand without the list."""
    found = value if isinstance(value, list) else [value]
    for one in found:
        if not isinstance(one, Mapping):
            raise InvalidInput(f"{word} has {clip(repr(one))}", hint=f"write {word} = [{example}]")
    return found


def _called(what: str, make: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Made from what is written; what is missing or too much is said in the words of the header."""
    known = signature(make)
    try:
        known.bind(*positional, **named)
    except TypeError as error:
        words = [one for one in known.parameters.values() if one.kind is not one.VAR_POSITIONAL]
        unknown = next((word for word in named if word not in known.parameters), None)
        needed = [one.name for one in words if one.default is one.empty and one.name not in named][len(positional) :]
        said = f"has no {unknown!r}" if unknown else f"lacks {needed[0]!r}" if needed else "is a table of settings"
        raise InvalidInput(f"{what} {said}", hint=f"there are {', '.join(one.name for one in words)}") from error
    return make(*positional, **named)


_CHECKS = {
    word: getattr(builtin, word)
    for word in (
        "row_count", "not_null", "unique", "in_range", "accepted_values", "matches", "foreign_key", "fresh",
        "schema_match", "sql_check",
    )
}  # fmt: skip


def _check(document: Mapping[str, Any]) -> Check:
    """`{ not_null = "id" }`, `{ in_range = { column = "amount", min = 0 }, severity = "warning" }`."""
    kinds = [word for word in document if word in _CHECKS]
    if len(kinds) != 1:
        raise InvalidInput(
            f"a check of the header names no kind: {clip(str(document))}", hint=f"one of {', '.join(_CHECKS)}"
        )
    value = document[kinds[0]]
    rest = {word: one for word, one in document.items() if word != kinds[0]}
    if isinstance(value, Mapping):
        rest |= value
        positional: list[Any] = [rest.pop("column")] if "column" in rest else []
    else:
        positional = list(value) if isinstance(value, list) else [] if value is True else [value]
    made: Check = _called(f"check {kinds[0]}", _CHECKS[kinds[0]], positional, rest)
    return made


_DIMENSIONS: Mapping[str, Callable[..., Axis]] = {**_TIMES, "static": static, "dynamic": dynamic}


def _dimension(document: Mapping[str, Any]) -> Axis:
    kind, name = document.get("kind"), document.get("name")
    if not isinstance(name, str):
        raise InvalidInput("a dimension of the header has no name")
    if kind not in _DIMENSIONS:
        raise InvalidInput(f"dimension {name} is {kind!r}", hint=f"one of {', '.join(_DIMENSIONS)}")
    rest = {word: value for word, value in document.items() if word != "kind"}
    axis: Axis = _called(f"dimension {name}", _DIMENSIONS[str(kind)], (), rest)
    return axis


def _inputs(tree: exp.Query, declared: Mapping[str, Any]) -> dict[str, Input]:
    inputs = {name: same(name) for name in _names_of(tree)}
    for name, how in declared.items():
        if name not in inputs:
            wrong = InvalidInput(f"the header maps {name!r}, and the query does not read it")
            raise _WrongOption("inputs", wrong)
        with _of("inputs", how):
            inputs[name] = _mapped(name, how)
    return inputs


def _mapped(name: str, how: Any) -> Input:
    if isinstance(how, str) and how in _MAPPINGS:
        return _MAPPINGS[how](name)
    match how:
        case {"window": [int(first), int(end)], **rest} if set(rest) <= {"dimension"}:
            return window(name, first, end, dimension=how.get("dimension"))
    raise InvalidInput(f"input {name} is mapped by {how!r}", hint="same, every, last, changes or { window = [-6, 0] }")


def tables_of(query: str, where: CallSite | None = None) -> list[str]:
    """The tables that a query reads, in the order of their names; what it defines itself is not among them."""
    return _names_of(parsed(query, where))


def _names_of(tree: exp.Query) -> list[str]:
    return sorted({".".join(part.name for part in table.parts) for table in tables_read(tree)})


def parsed(query: str, where: CallSite | None = None) -> exp.Query:
    """The one query of an asset as a tree. What is wrong is said with its line, if it is known where the query begins."""
    try:
        statements = [one for one in sqlglot.parse(query, read="spark") if one is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = f" near {clip(first['highlight'])!r}" if first.get("highlight") else ""
        said = _TOKEN.sub("", str(first.get("description") or error).partition(" for <class")[0])
        place = _line(where, first.get("line") or 1)
        raise InvalidInput(f"{place}the query does not parse{near}: {clip(said, 200)}", hint=_SQL_HINT) from error
    except SqlglotError as error:
        raise InvalidInput(f"{_line(where, 1)}the query does not parse: {clip(str(error), 200)}", hint=_SQL_HINT) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InvalidInput(f"{_line(where, 1)}a SQL asset is one SELECT", hint="one query a file; Servo writes the table")
    return statements[0]


def _line(where: CallSite | None, number: int) -> str:
    return "" if where is None else f"{where.file}:{where.line + number - 1}: "


def tables_read(tree: exp.Query) -> Iterator[exp.Table]:
    """The places where a query names a table that it does not define itself. A function that makes rows is no table."""
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_defined(table):
            yield table


def _is_defined(table: exp.Table) -> bool:
    """Whether a WITH around it defines the name. A definition sees those before it, and itself only if it is recursive."""
    if table.args.get("db") is not None:
        return False
    inside: exp.Expr | None = table
    while inside is not None and inside.parent is not None:
        around: exp.Expr = inside.parent
        if isinstance(around, exp.With):
            place = next(number for number, one in enumerate(around.expressions) if one is inside)
            visible = around.expressions[: place + bool(around.args.get("recursive"))]
            inside = around.parent  # the query that has this WITH; what is defined in it was looked at here
        else:
            clause = around.args.get("with_")
            visible = [] if clause is None else clause.expressions
            inside = around
        if any(one.alias_or_name.lower() == table.name.lower() for one in visible):
            return True
    return False
