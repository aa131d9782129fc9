"""The decorators: a plain function becomes an asset and stays a plain function.

`Asset` is callable with the function's own signature, so a unit test hands it any DataFrame. Making one is pure: nothing is
started, read or registered anywhere but in the project that is being loaded at the moment, if any.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, ParamSpec, TypeVar, overload

from arco.fold.spark_fixed import own_settings
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import RUN_TIMEOUT_S_MAX
from arco.quality.builtin import duration_s, function_check
from arco.quality.checks import Check
from arco.quality.compatibility import Compatibility
from arco.quality.gates import GatingPolicy, policy
from arco.quality.schemas import Schema
from arco.servo.partitions.axes import Axis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.sdk.definitions import AssetKind, CallSite, Retention, Retry, Write, WriteMode
from arco.servo.sdk.dimensions import partitioned
from arco.servo.sdk.inputs import Input, same
from arco.servo.sdk.layouts import partition_field, sort_field
from arco.servo.sdk.plain_values import is_plain

P = ParamSpec("P")
R = TypeVar("R")

RUN_PARAMETER = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An asset as its author wrote it: names are not looked up yet, the project's defaults are not filled in."""

    name: str
    kind: AssetKind
    where: CallSite
    function: Callable[..., Any] | None = None
    sql: str | None = None
    inputs: Mapping[str, Input]
    wants_run: bool = False
    parameters: Mapping[str, Any]
    partitions: Partitioning
    checks: tuple[Check, ...] = ()
    write: Write = field(default_factory=Write)
    schema: Any = None
    compatibility: Compatibility = Compatibility.BACKWARD
    gate: GatingPolicy | None = None
    retry: Retry = field(default_factory=Retry)
    retention: Retention = field(default_factory=Retention)
    timeout_s: float | None = None
    fresh_within_s: int | None = None
    partitions_per_task: int | None = None
    concurrency: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    description: str = ""
    renamed_from: tuple[str, ...] = ()
    table: str | None = None


_collecting: ContextVar[list["Asset[Any, Any]"] | None] = ContextVar("collecting", default=None)


class Asset(Generic[P, R]):
    """A function that makes a table. Call it like the function it is."""

    def __init__(self, written: Written, function: Callable[P, R] | None = None) -> None:
        self.written = written
        self.function = function
        if function is not None:
            functools.update_wrapper(self, function)
        found = _collecting.get()
        if found is not None:
            found.append(self)

    @property
    def name(self) -> str:
        return self.written.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise InvalidInput(f"{self.name} is a table that others write", hint="it has no code to call")
        return self.function(*args, **kwargs)

    def __reduce__(self) -> str:
        """By reference, like the function it stands for."""
        return getattr(self, "__qualname__", self.name)

    def __repr__(self) -> str:
        return f"<asset {self.name} at {self.written.where}>"

    def add_check(self, check: Check) -> None:
        if self.written.kind is AssetKind.SOURCE:
            raise InvalidInput(
                f"{self.name} is a table that others write: its rows are there before anybody could check them",
                hint="check them in an asset that reads it",
            )
        self.written = replace(self.written, checks=(*self.written.checks, check))


@contextmanager
def collected() -> Iterator[list[Asset[Any, Any]]]:
    """The assets that are made inside this block, in order."""
    found: list[Asset[Any, Any]] = []
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


@overload
def asset(function: Callable[P, R], /) -> Asset[P, R]: ...


@overload
def asset(
    *,
    name: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    partitions: Axis | Iterable[Axis] | None = None,
    checks: Iterable[Check] = (),
    mode: str = "replace",
    key: str | Iterable[str] = (),
    partition_by: Iterable[str] | None = None,
    sort_by: Iterable[str] = (),
    schema: Any = None,
    compatibility: str = "backward",
    gate: str | GatingPolicy | None = None,
    retry: Retry | int | None = None,
    timeout: str | float | None = None,
    fresh_within: str | float | None = None,
    partitions_per_task: int | None = None,
    concurrency: int | None = None,
    resources: Mapping[str, float] | None = None,
    spark: Mapping[str, str | int | float | bool] | None = None,
    retention: Retention | None = None,
    owners: str | Iterable[str] = (),
    tags: str | Iterable[str] = (),
    description: str | None = None,
    renamed_from: str | Iterable[str] = (),
    table: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Callable[[Callable[P, R]], Asset[P, R]]: ...


def asset(function: Callable[P, R] | None = None, /, **given: Any) -> Any:
    """Make a function an asset: its parameters are its inputs, what it returns is its table.

    A parameter named `run` gets the run (partitions, parameters, spark). A parameter with a default value is a setting
    that `arco run --param` can change. Everything else is the name of an asset, unless `inputs` says otherwise.
    """
    if function is not None:
        return Asset(_written(function, {}), function)

    def decorate(decorated: Callable[P, R]) -> Asset[P, R]:
        return Asset(_written(decorated, given), decorated)

    return decorate


def source(
    name: str,
    *,
    partitions: Axis | Iterable[Axis] | None = None,
    fresh_within: str | float | None = None,
    owners: str | Iterable[str] = (),
    tags: str | Iterable[str] = (),
    description: str = "",
    table: str | None = None,
) -> Asset[..., Any]:
    """A table that others write: `source("shop.orders_raw")`. It is read and never written."""
    frame = sys._getframe(1)
    return Asset(
        Written(
            name=name,
            kind=AssetKind.SOURCE,
            where=CallSite(frame.f_code.co_filename, frame.f_lineno),
            inputs={},
            parameters={},
            partitions=partitioned(partitions),
            fresh_within_s=None if fresh_within is None else _seconds(fresh_within),
            owners=_texts({"owners": owners}, "owners"),
            tags=_texts({"tags": tags}, "tags"),
            description=description,
            table=table,
        )
    )


def check(
    of: Asset[Any, Any], *, name: str | None = None, severity: str = "error"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A check of the project's own: a function from the asset's rows to a Column, a bool or a result."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        of.add_check(function_check(function, name=name or "", severity=severity))
        return function

    return decorate


OPTIONS = frozenset(
    {
        "name", "inputs", "partitions", "checks", "mode", "key", "partition_by", "sort_by", "schema", "compatibility",
        "gate", "retry", "timeout", "fresh_within", "partitions_per_task", "concurrency", "resources", "spark", "retention",
        "owners", "tags", "description", "renamed_from", "table", "properties",
    }
)  # fmt: skip


def _written(function: Callable[..., Any], given: Mapping[str, Any]) -> Written:
    where = CallSite(inspect.getsourcefile(function) or "?", function.__code__.co_firstlineno)
    unknown = sorted(set(given) - OPTIONS)
    if unknown:
        raise InvalidInput(f"{where}: asset has no option {unknown[0]!r}", hint=f"one of {', '.join(sorted(OPTIONS))}")
    try:
        inputs, parameters, wants_run = _signature(function, given.get("inputs") or {})
        return Written(
            name=given.get("name") or function.__name__,
            kind=AssetKind.PYTHON,
            where=where,
            function=function,
            inputs=inputs,
            wants_run=wants_run,
            parameters=parameters,
            **options(given, inspect.getdoc(function) or ""),
        )
    except InvalidInput as error:
        if str(where) in error.message:
            raise
        raise InvalidInput(f"{where}: {error.message}", hint=error.hint) from error


def options(given: Mapping[str, Any], description: str) -> dict[str, Any]:
    """The options of an asset, checked; the same for functions and for SQL."""
    retry = given.get("retry")
    gate = given.get("gate")
    return {
        "partitions": partitioned(given.get("partitions")),
        "checks": tuple(given.get("checks", ())),
        "write": _write(given),
        "schema": None if given.get("schema") is None else Schema.of(given["schema"]),
        "compatibility": choice(Compatibility, given.get("compatibility", "backward"), "compatibility"),
        "gate": None if gate is None else policy(gate),
        "retry": Retry(attempts=retry) if isinstance(retry, int) else retry or Retry(),
        "retention": given.get("retention") or Retention(),
        "timeout_s": None if given.get("timeout") is None else float(_seconds(given["timeout"])),
        "fresh_within_s": None if given.get("fresh_within") is None else _seconds(given["fresh_within"]),
        "partitions_per_task": _count(given, "partitions_per_task", "how many partitions one task makes"),
        "concurrency": _count(given, "concurrency", "how many tasks of this asset run at once"),
        "resources": _resources(given.get("resources") or {}),
        "spark": own_settings(given.get("spark") or {}),
        "owners": _texts(given, "owners"),
        "tags": _texts(given, "tags"),
        "description": _text(given, "description") or description,
        "renamed_from": _texts(given, "renamed_from"),
        "table": _text(given, "table"),
    }


def _write(given: Mapping[str, Any]) -> Write:
    mode = choice(WriteMode, given.get("mode", "replace"), "mode")
    key = _texts(given, "key")
    if (mode is WriteMode.MERGE) != bool(key):
        raise InvalidInput("merge needs a key, and only merge has one", hint='write mode="merge", key="id"')
    by = None if given.get("partition_by") is None else _texts(given, "partition_by")
    order = _texts(given, "sort_by")
    for text in by or ():
        partition_field(text)
    for text in order:
        sort_field(text)
    return Write(mode, key, by, order, dict(given.get("properties") or {}))


def _signature(function: Callable[..., Any], declared: Mapping[str, Any]) -> tuple[dict[str, Input], dict[str, Any], bool]:
    """What the parameters mean."""
    inputs: dict[str, Input] = {}
    parameters: dict[str, Any] = {}
    wants_run = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            raise InvalidInput(f"parameter {name} cannot be filled by name", hint="name every input")
        if name in declared:
            value = declared[name]
            inputs[name] = value if isinstance(value, Input) else same(value)
        elif name == RUN_PARAMETER:
            wants_run = True
        elif parameter.default is not parameter.empty:
            parameters[name] = _setting(name, parameter.default)
        else:
            inputs[name] = same(name)
    unknown = sorted(set(declared) - set(inputs))
    if unknown:
        raise InvalidInput(f"inputs names {unknown[0]!r}, and the function has no such parameter")
    return inputs, parameters, wants_run


def _setting(name: str, default: Any) -> Any:
    """A value that can be written down: it is part of the asset's fingerprint, and people give others on the command line."""
    if is_plain(default):
        return default
    raise InvalidInput(
        f"parameter {name} has a default that cannot be written down: {clip(repr(default))}",
        hint="a setting is a text, a number, a date, or a list or dict of such; make anything else in the function",
    )


def _resources(given: Mapping[str, Any]) -> dict[str, float]:
    """What a task asks for, such as {"cores": 4}: the words are the project's own."""
    for word, amount in given.items():
        if not word or isinstance(amount, bool) or not isinstance(amount, int | float):
            raise InvalidInput(f"resources has {word!r}: {amount!r}", hint='write a word and a number: {"cores": 4}')
        if not 0 <= amount < float("inf"):
            raise InvalidInput(f"resources asks for {amount} of {word}", hint="zero or more")
    return {word: float(amount) for word, amount in sorted(given.items())}


def _seconds(value: Any) -> int:
    """A duration as it is written, or a number of seconds."""
    found = value if isinstance(value, int | float) else duration_s(value)
    if not 1 <= found <= RUN_TIMEOUT_S_MAX:
        raise InvalidInput(f"a duration of {found} seconds", hint=f"more than zero, and at most {RUN_TIMEOUT_S_MAX}")
    return int(found)


def _count(given: Mapping[str, Any], word: str, what: str) -> int | None:
    value = given.get(word)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidInput(f"{word} is {value!r}", hint=f"{what}: 1 or more")
    return value


def _text(given: Mapping[str, Any], word: str) -> str | None:
    value = given.get(word)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{word}={value!r} is not a text")
    return value


def _texts(given: Mapping[str, Any], word: str) -> tuple[str, ...]:
    """An option that is one text or several."""
    value = given.get(word, ())
    found = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    if isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in found):
        raise InvalidInput(f"{word}={value!r} is not a text or a list of texts")
    return found


def choice(kind: Any, text: Any, what: str) -> Any:
    """A word of a closed list, or what the list is."""
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{what}={text!r} is not known", hint=f"one of {', '.join(one.value for one in kind)}") from None
