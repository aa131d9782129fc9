"""A declaration that somebody sent: held against everything that loading a project would have refused, as far as data shows it.

`arco deploy` reads a project's code, and the loader has looked at all of this. Over HTTP nobody has, so it is done here, before
anything is compared or stored: names, fields and their types, inputs that are there and no circles, tables that no two publish,
columns, schedules, and that the code version is that of these assets. What only code can tell (whether a mapping of partitions
fits, what a selection means) was looked at by whoever declared it, and is looked at again by whoever runs it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from arco.catalog.spelling import parse_name
from arco.kernel.asset_key import AssetKey
from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import ScheduleName, clip
from arco.kernel.limits import DECLARED_ASSETS_MAX
from arco.quality.checks import Level, Severity
from arco.quality.compatibility import Compatibility
from arco.quality.gates import Action
from arco.quality.schemas import type_text
from arco.servo.deploy.declaration import FORMAT, FORMAT_VERSION, Declaration, DeclaredAsset, DeclaredSchedule
from arco.servo.partitions.axes import Period
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.definitions import AssetKind, InputKind, Mode, WriteMode, why_not_changes
from arco.servo.sdk.fingerprints import of_project
from arco.servo.sdk.problems import Problems
from arco.servo.sdk.schedules import CatchUp, schedule_version, zone
from arco.servo.sdk.tables import QUARANTINE_SUFFIX

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_NESTED = {"struct", "list", "map"}
T = TypeVar("T")
_SHOWN_MAX = 20

_Text = Annotated[str, Meta(max_length=100_000)]
_Count = Annotated[int, Meta(ge=0)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a document that has exactly these fields."""


class _Input(_Strict, frozen=True, kw_only=True):
    parameter: str
    kind: InputKind
    asset: str | None
    path: str | None
    mapping: str


class _Check(_Strict, frozen=True, kw_only=True):
    name: str
    kind: str
    level: Level
    severity: Severity
    columns: list[str]
    quarantine_rows: bool
    rule: dict[str, Any]


class _Gate(_Strict, frozen=True, kw_only=True):
    name: str
    info: Action
    warning: Action
    error: Action
    critical: Action


class _Write(_Strict, frozen=True, kw_only=True):
    mode: WriteMode
    key: list[str]
    partition_by: list[str] | None
    sort_by: list[str]
    properties: dict[str, str]


class _Retention(_Strict, frozen=True, kw_only=True):
    days: _Count
    versions_min: Annotated[int, Meta(ge=1)]
    versions_max: Annotated[int, Meta(ge=1)]


class _Definition(_Strict, frozen=True, kw_only=True):
    """What `manifest.described` writes, field by field."""

    description: _Text
    owners: list[str]
    tags: list[str]
    where: str
    partitions: list[dict[str, Any]]
    inputs: list[_Input]
    checks: list[_Check]
    gate: _Gate
    write: _Write
    compatibility: Compatibility
    schema_declared: bool
    fresh_within_s: Annotated[int, Meta(ge=1)] | None
    resources: dict[str, float]
    retention: _Retention
    table: str | None
    parameters: dict[str, str]


class _TimeAxis(_Strict, frozen=True, kw_only=True):
    name: str
    kind: Period
    start: str
    end: str | None


class _ListAxis(_Strict, frozen=True, kw_only=True):
    name: str
    kind: str
    values: list[str]


class _Schedule(_Strict, frozen=True, kw_only=True):
    when: dict[str, Any]
    make: list[str]
    partitions: dict[str, str]
    mode: Mode
    parameters: dict[str, str]


class _AtTimes(_Strict, frozen=True, kw_only=True):
    kind: str
    cron: str
    timezone: str
    catch_up: CatchUp


class _AfterCommits(_Strict, frozen=True, kw_only=True):
    kind: str
    sources: Annotated[list[str], Meta(min_length=1)]


class _InTime(_Strict, frozen=True, kw_only=True):
    kind: str
    assets: Annotated[list[str], Meta(min_length=1)]


_WHEN: dict[str, type[_AtTimes | _AfterCommits | _InTime]] = {
    "cron": _AtTimes,
    "source": _AfterCommits,
    "freshness": _InTime,
}


def verify(declaration: Declaration) -> None:
    """Raise what is wrong with a declaration: everything at once."""
    if (declaration.format, declaration.format_version) != (FORMAT, FORMAT_VERSION):
        raise InvalidInput(
            f"this is {clip(declaration.format)!r} version {declaration.format_version}",
            hint=f"{FORMAT} version {FORMAT_VERSION} is known here; arco deploy --declare writes it",
        )
    if len(declaration.assets) > DECLARED_ASSETS_MAX:
        raise TooLarge(f"{len(declaration.assets)} assets", hint=f"at most {DECLARED_ASSETS_MAX} in one project")
    problems = Problems()
    definitions: dict[str, _Definition] = {}
    for key, one in declaration.assets.items():
        with problems.kept():
            definitions[key] = _asset(key, one)
    _check_inputs(declaration.assets, definitions, problems)
    _check_tables(declaration.assets, definitions, problems)
    for name, schedule in declaration.schedules.items():
        with problems.kept():
            _check_schedule(name, schedule, declaration.assets, definitions)
    wanted = of_project({key: one.fingerprint for key, one in declaration.assets.items()})
    if declaration.code_version != wanted:
        problems.add(f"code version {clip(declaration.code_version)!r} is not that of these assets, {wanted}")
    if problems.found:
        said = "; ".join(one.message for one in problems.found[:_SHOWN_MAX])
        more = f"; and {len(problems.found) - _SHOWN_MAX} more" if len(problems.found) > _SHOWN_MAX else ""
        raise InvalidInput(f"the declaration is not one: {said}{more}", hint="arco deploy --declare writes one")


def _asset(key: str, one: DeclaredAsset) -> _Definition:
    if str(AssetKey.parse(key)) != key:
        raise InvalidInput(f"{clip(key)!r} is not how an asset is named")
    for former in one.renamed_from:
        AssetKey.parse(former)
    if _FINGERPRINT.fullmatch(one.fingerprint) is None:
        raise InvalidInput(f"{key} has a fingerprint that is none")
    kind = _word(AssetKind, one.kind, f"the kind of {key}")
    found = _read(one.definition, _Definition, key)
    canonical_bytes(one.definition)
    if found.schema_declared != (one.columns is not None):
        raise InvalidInput(f"{key} says that its schema is declared, or not, and its columns say otherwise")
    if kind is AssetKind.SOURCE and found.inputs:
        raise InvalidInput(f"{key} is a source, and has inputs")
    _check_partitions(key, found)
    _check_columns(key, one)
    return found


def _check_partitions(key: str, found: _Definition) -> None:
    names = [one.get("name") for one in found.partitions]
    if len(set(map(str, names))) != len(names):
        raise InvalidInput(f"{key} has a dimension twice")
    for one in found.partitions:
        if one.get("kind") in set(Period):
            axis = _read(one, _TimeAxis, key)
            _moment(axis.start, key)
            _moment(axis.end or axis.start, key)
        elif one.get("kind") in {"static", "dynamic"}:
            _read(one, _ListAxis, key)
        else:
            raise InvalidInput(f"{key} has a dimension of kind {clip(str(one.get('kind')))!r}")


def _check_columns(key: str, one: DeclaredAsset) -> None:
    for column in one.columns or ():
        if not column.path:
            raise InvalidInput(f"{key} has a column without a name")
        if column.type not in _NESTED and type_text(column.type) != column.type:
            raise InvalidInput(f"{key}: {clip(column.type)!r} is spelled {type_text(column.type)!r}")
        canonical_bytes(column.default)
    _ = one.schema  # two columns of one id or one path are refused there


def _check_inputs(assets: Mapping[str, DeclaredAsset], definitions: Mapping[str, _Definition], problems: Problems) -> None:
    needs: dict[str, set[str]] = {}
    for key, found in definitions.items():
        parameters = [one.parameter for one in found.inputs]
        if len(set(parameters)) != len(parameters):
            problems.add(f"{key} has two inputs of one name")
        for one in found.inputs:
            if (one.kind is InputKind.FILES) != (one.asset is None) or (one.asset is None and not one.path):
                problems.add(f"input {clip(one.parameter)!r} of {key} is neither an asset nor files")
            elif one.asset is not None and one.asset not in assets:
                problems.add(f"{key} reads {clip(one.asset)!r}, which is no asset of the project")
            why = why_not_changes(found.write.mode, has_partitions=bool(found.partitions))
            if one.kind is InputKind.CHANGES and why is not None:
                problems.add(f"{key} reads changes of {clip(str(one.asset))!r}, {why}")
        needs[key] = {one.asset for one in found.inputs if one.asset in definitions and one.asset is not None}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        problems.add(f"these assets need each other: {' -> '.join(reversed(error.args[1]))}")


def _check_tables(assets: Mapping[str, DeclaredAsset], definitions: Mapping[str, _Definition], problems: Problems) -> None:
    """Two assets must not publish to one table, nor read as a source what another one publishes."""
    writers: dict[tuple[tuple[str, ...], str], str] = {}
    sources: list[tuple[tuple[tuple[str, ...], str], str]] = []
    for key, found in definitions.items():
        with problems.kept():
            levels, name = table_named(key, found.table)
            if assets[key].kind == AssetKind.SOURCE:
                sources.append(((levels, name), key))
                continue
            aside = [(levels, f"{name}{QUARANTINE_SUFFIX}")] if any(it.quarantine_rows for it in found.checks) else []
            for table in ((levels, name), *aside):
                if writers.setdefault(table, key) != key:
                    problems.add(f"{key} and {writers[table]} publish to one table")
    for table, key in sources:
        if table in writers:
            problems.add(f"{key} is a source, and {writers[table]} publishes its table")


def table_named(key: str, table: str | None) -> tuple[tuple[str, ...], str]:
    """The table of an asset, by what its definition says."""
    if table is not None:
        return parse_name(table)
    found = AssetKey.parse(key)
    return (found.namespace,), found.name


def _check_schedule(
    name: str,
    one: DeclaredSchedule,
    assets: Mapping[str, DeclaredAsset],
    definitions: Mapping[str, _Definition],
) -> None:
    what = f"schedule {clip(name)!r}"
    ScheduleName(name)
    found = _read(one.definition, _Schedule, what)
    if one.version != schedule_version(name, one.definition):
        raise InvalidInput(f"{what} has version {clip(one.version)!r}, and does what another does")
    kind = _WHEN.get(str(found.when.get("kind")))
    if kind is None:
        raise InvalidInput(f"{what} fires by {clip(str(found.when.get('kind')))!r}, which is not known")
    match _read(found.when, kind, what):
        case _AtTimes(cron=cron, timezone=timezone):
            Cron.parse(cron)
            zone(timezone)
        case _AfterCommits(sources=sources):
            for key in sources:
                if key not in assets or assets[key].kind != AssetKind.SOURCE:
                    raise InvalidInput(f"{what} waits for {clip(key)!r}, which is no source of the project")
        case _InTime(assets=kept):
            for key in kept:
                if key not in definitions or definitions[key].fresh_within_s is None:
                    raise InvalidInput(f"{what} keeps {clip(key)!r} fresh, which has no fresh_within")


def _moment(text: str, key: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{key} has a dimension from or to {clip(text)!r}, which is no moment") from None


def _word(kind: type[T], text: str, what: str) -> T:
    return _read(text, kind, what)


def _read(value: Any, kind: type[T], what: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{what}: {str(error).replace('`', '')}") from None
