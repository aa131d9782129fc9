"""A project: every asset of a folder, looked up, checked against each other, and fingerprinted.

    arco.toml      [project] name, namespace, assets = ["assets"]
    assets/*.py    functions with @asset, tables declared with source(...), schedules with schedule(...)
    assets/*.sql   one query a file

Loading imports the project's modules and nothing else: no Spark, no network, no store. What is wrong is said with file and line.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module, invalidate_caches
from pathlib import Path

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import ArcoError, BrokenInvariant, InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.quality.builtin import not_null, sql_check
from arco.quality.checks import Check, named
from arco.quality.gates import STRICT, GatingPolicy
from arco.quality.kinds import ForeignKey
from arco.quality.schemas import ColumnKey, Schema, quoted
from arco.servo.partitions.mappings import All, Custom
from arco.servo.sdk.authoring import Written, collected
from arco.servo.sdk.definitions import AssetDefinition, AssetKind, CallSite, InputDefinition, InputKind
from arco.servo.sdk.fingerprints import of_function, of_project, of_text
from arco.servo.sdk.graph import Graph, examine
from arco.servo.sdk.inputs import Input
from arco.servo.sdk.late_numpy import numpy_when_it_counts
from arco.servo.sdk.plain_values import spelled
from arco.servo.sdk.problems import Problems
from arco.servo.sdk.schedules import ScheduleDefinition, WrittenSchedule, collected_schedules, defined
from arco.servo.sdk.tables import TableName, quarantine_of, table_of

_PLACED = re.compile(r".+:\d+: ")
_NEEDS_SPARK = (
    "importing a project starts no Spark: name types by their classes, udf(LongType()), and make columns in functions"
)


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded project. `code_version` changes when the code of any asset does."""

    name: str
    folder: Path
    namespace: str
    graph: Graph
    code_version: str
    schedules: Mapping[str, ScheduleDefinition] = field(default_factory=dict)

    @property
    def assets(self) -> Mapping[AssetKey, AssetDefinition]:
        return self.graph.assets


def load_project(
    folder: Path,
    *,
    name: str,
    namespace: str,
    assets: Iterable[str] = ("assets",),
    gate: GatingPolicy = STRICT,
    schedules: Iterable[WrittenSchedule] = (),
) -> Project:
    """Everything that the asset folders of a project define; what is wrong with it is raised.

    `schedules` are those that are written elsewhere, such as in arco.toml.
    """
    project, problems = examine_project(
        folder, name=name, namespace=namespace, assets=assets, gate=gate, schedules=schedules
    )
    problems.raise_first()
    return _whole(project)


def examine_project(
    folder: Path,
    *,
    name: str,
    namespace: str,
    assets: Iterable[str] = ("assets",),
    gate: GatingPolicy = STRICT,
    schedules: Iterable[WrittenSchedule] = (),
) -> tuple[Project | None, Problems]:
    """The same, with everything that is wrong. A project with problems is None."""
    problems = Problems()
    files: list[Path] = []
    for part in assets:
        place = folder / part
        if not place.exists():
            raise InvalidInput(f"{place} does not exist", hint="arco.toml names it in assets; arco init writes a project")
        files += [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.sql")]
    files = sorted(set(files))
    written = _queries([file for file in files if file.suffix == ".sql"], problems)
    with collected_schedules() as found:
        written += _imported([file for file in files if file.suffix == ".py"], folder, problems)
    project = _examined(written, problems, folder=folder, name=name, namespace=namespace, gate=gate)
    if project is None:
        return None, problems
    known = _scheduled([*schedules, *found], project.graph, problems)
    return None if problems.found else replace(project, schedules=known), problems


def _scheduled(written: Iterable[WrittenSchedule], graph: Graph, problems: Problems) -> dict[str, ScheduleDefinition]:
    found: dict[str, ScheduleDefinition] = {}
    for one in written:
        with problems.kept():
            if one.name in found:
                raise InvalidInput(
                    f"{one.where}: schedule {one.name!r} is defined twice", hint=f"the other is at {found[one.name].where}"
                )
            found[one.name] = defined(one, graph)
    return found


def assembled(
    written: Iterable[Written], *, folder: Path, name: str, namespace: str, gate: GatingPolicy = STRICT
) -> Project:
    """A project from its parts: names looked up, defaults filled in, the graph checked."""
    problems = Problems()
    project = _examined(list(written), problems, folder=folder, name=name, namespace=namespace, gate=gate)
    problems.raise_first()
    return _whole(project)


def _examined(
    written: list[Written], problems: Problems, *, folder: Path, name: str, namespace: str, gate: GatingPolicy
) -> Project | None:
    unread = bool(problems.found)
    keyed = _keyed(written, namespace, problems)
    if not keyed and not unread:
        problems.add("the project has no assets", hint="write a function with @asset; arco init shows one")
    if unread:
        return None  # what a file that could not be read defines is not known, and every reader of it would seem wrong
    definitions = {}
    for key, one in keyed.items():
        with problems.kept():
            definitions[key] = _defined(key, one, keyed, gate, problems)
    _check_tables(definitions.values(), problems)
    graph = examine(definitions, problems)
    if graph is None or problems.found:
        return None
    version = of_project({str(key): one.fingerprint for key, one in definitions.items()})
    return Project(name, folder, namespace, graph, str(version))


def _check_tables(definitions: Iterable[AssetDefinition], problems: Problems) -> None:
    """Two assets must not publish to one table, nor read as a source what another one publishes."""
    writers: dict[TableName, AssetDefinition] = {}
    sources: list[tuple[TableName, AssetDefinition]] = []
    for one in definitions:
        with problems.kept():
            if one.is_source:
                sources.append((table_of(one), one))
                continue
            for table in (table_of(one), *([quarantine_of(one)] if any(it.quarantine_rows for it in one.checks) else [])):
                _refuse_shared(one, table, writers.setdefault(table, one))
    for table, one in sources:
        with problems.kept():
            _refuse_shared(one, table, writers.get(table, one))


def _refuse_shared(one: AssetDefinition, table: TableName, other: AssetDefinition) -> None:
    if other is not one:
        levels, name = table
        raise InvalidInput(
            f"{one.where}: {one.key} has the table {'.'.join((*levels, name))}, which {other.key} publishes",
            hint=f"that one is at {other.where}; give one of them another table, or read the asset instead",
        )


def _whole(project: Project | None) -> Project:
    if project is None:
        raise BrokenInvariant("a project without problems is not there")
    return project


def _queries(files: list[Path], problems: Problems) -> list[Written]:
    found: list[Written] = []
    for file in files:
        with problems.kept():
            # Imported here: SQL has a large parser, and most projects' first asset is a function.
            found.append(import_module("arco.servo.sdk.sql_assets").read_sql_asset(file))
    return found


def _imported(files: list[Path], folder: Path, problems: Problems) -> list[Written]:
    """Import files as the modules that the project itself knows them by. One that another imports is imported once."""
    modules = {".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): file for file in files}
    tops = {name.partition(".")[0] for name in modules}
    for known in [name for name in sys.modules if name.partition(".")[0] in tops]:
        del sys.modules[known]  # of an earlier load, or of another project with a folder of this name
    sys.path.insert(0, str(folder))
    try:
        invalidate_caches()
        with numpy_when_it_counts(), collected() as found:
            for name, file in sorted(modules.items()):
                with problems.kept():
                    _import(name, file, folder)
    finally:
        sys.path.remove(str(folder))
    return [one.written for one in found]


def _import(name: str, file: Path, folder: Path) -> None:
    try:
        import_module(name)
    except ArcoError as error:
        if _PLACED.match(error.message):
            raise
        raise InvalidInput(f"{_place_of(error, file, folder)}: {error.message}", hint=error.hint) from error
    except Exception as error:
        said = _NEEDS_SPARK if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error) else "the file must import"
        place = _place_of(error, file, folder)
        raise InvalidInput(f"{place}: {type(error).__name__}: {error}", hint=said) from error


def _place_of(error: BaseException, file: Path, folder: Path) -> CallSite:
    """The innermost line of the project that an error came from; it may be in another file than the one that is imported."""
    if isinstance(error, SyntaxError) and error.filename:
        return CallSite(error.filename, error.lineno or 1)
    found = CallSite(str(file), 1)
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == str(file) or (Path(name).is_relative_to(folder) and "site-packages" not in name):
            found = CallSite(name, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _keyed(written: list[Written], namespace: str, problems: Problems) -> dict[AssetKey, Written]:
    keyed: dict[AssetKey, Written] = {}
    for one in written:
        with problems.kept():
            key = _key(one.name, namespace, one.where)
            if key in keyed:
                raise InvalidInput(f"{one.where}: {key} is defined twice", hint=f"the other is at {keyed[key].where}")
            keyed[key] = one
    return keyed


def _key(name: str, namespace: str, where: CallSite) -> AssetKey:
    try:
        return AssetKey.parse(name if "." in name else f"{namespace}.{name}")
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}", hint=error.hint) from error


def _defined(
    key: AssetKey, one: Written, keyed: Mapping[AssetKey, Written], gate: GatingPolicy, problems: Problems
) -> AssetDefinition:
    inputs: list[InputDefinition] = []
    for parameter, given in one.inputs.items():
        with problems.kept():
            inputs.append(_input(parameter, given, one, keyed, key))
    checks = _checks(key, one, keyed)
    inputs += [
        InputDefinition(f"check {check.name}", InputKind.CHECK, AssetKey.parse(check.to), mapping=All())
        for check in checks
        if isinstance(check, ForeignKey)
    ]
    return AssetDefinition(
        key=key,
        kind=one.kind,
        where=one.where,
        fingerprint=_fingerprint(one, tuple(inputs)),
        function=one.function,
        sql=one.sql,
        inputs=tuple(inputs),
        wants_run=one.wants_run,
        partitions=one.partitions,
        checks=checks,
        write=one.write,
        schema=one.schema,
        compatibility=one.compatibility,
        gate=one.gate or gate,
        retry=one.retry,
        retention=one.retention,
        timeout_s=one.timeout_s,
        fresh_within_s=one.fresh_within_s,
        partitions_per_task=one.partitions_per_task,
        concurrency=one.concurrency,
        resources=one.resources,
        spark=one.spark,
        owners=one.owners,
        tags=one.tags,
        description=one.description,
        parameters=one.parameters,
        renamed_from=tuple(_key(old, key.namespace, one.where) for old in one.renamed_from),
        table=one.table,
    )


def _checks(key: AssetKey, one: Written, keyed: Mapping[AssetKey, Written]) -> tuple[Check, ...]:
    """The checks, each under a name of its own, with the assets they compare with looked up.

    A column that the declared schema requires is checked like any other: what Spark reads may always be NULL to it.
    """
    given = (*one.checks, *_required(one))
    try:
        named(given)
    except InvalidInput as error:
        raise InvalidInput(f"{one.where}: {key}: {error.message}", hint=error.hint) from error
    return tuple(_compared(check, key, one, keyed) if isinstance(check, ForeignKey) else check for check in given)


def _compared(check: ForeignKey, key: AssetKey, one: Written, keyed: Mapping[AssetKey, Written]) -> ForeignKey:
    """A check with the other asset looked up: one that is published before, so never the asset itself."""
    other = _looked_up(check.to, one, keyed, key)
    if other == key:
        raise InvalidInput(
            f"{one.where}: {key}: {check.name} compares it with itself, and a foreign key is one of another asset",
            hint='compare its rows by sql_check("…", query="SELECT * FROM {rows} a LEFT ANTI JOIN {rows} b ON …")',
        )
    return replace(check, to=str(other))


def _required(one: Written) -> list[Check]:
    """A check for each column that the declared schema requires, also inside structs: there only where the struct is one."""
    if one.schema is None:
        return []
    columns = Schema.of(one.schema).columns
    outside_lists: set[ColumnKey | None] = {None}
    checks: list[Check] = []
    for column in columns:
        if column.parent not in outside_lists:
            continue
        if column.type == "struct":
            outside_lists.add(column.id)
        name = f"required({column.full_name})"
        if column.required and column.parent is None:
            checks.append(not_null(column.full_name, name=name))
        elif column.required:
            whole, own = quoted(column.path[:-1]), quoted(column.path)
            checks.append(sql_check(name, f"{whole} IS NULL OR {own} IS NOT NULL"))
    return checks


def _input(
    parameter: str, given: Input, reader: Written, keyed: Mapping[AssetKey, Written], key: AssetKey
) -> InputDefinition:
    found = None if given.asset is None else _looked_up(given.asset, reader, keyed, key)
    return InputDefinition(parameter, given.kind, found, given.path, given.format, given.options, given.mapping)


def _looked_up(name: str, reader: Written, keyed: Mapping[AssetKey, Written], key: AssetKey) -> AssetKey:
    """An asset by its full name, by its name in the reader's namespace, or by its name alone if only one has it."""
    same_namespace = AssetKey(key.namespace, name) if "." not in name and name.isidentifier() and name.islower() else None
    candidates = [one for one in keyed if str(one) == name]
    if not candidates and same_namespace in keyed and same_namespace is not None:
        candidates = [same_namespace]
    candidates = candidates or [one for one in keyed if one.name == name]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        both = ", ".join(sorted(str(one) for one in candidates))
        raise InvalidInput(f"{reader.where}: {key} reads {name!r}, which several assets are called", hint=f"one of {both}")
    raise InvalidInput(
        f"{reader.where}: {key} reads {name!r}, and there is no such asset",
        hint=f"{_near(name, keyed)}define it, or declare a table that others write: source({name!r})",
    )


def _near(name: str, keyed: Mapping[AssetKey, Written]) -> str:
    """The name that may have been meant."""
    names = {one.name: one.name for one in keyed} | {str(one): str(one) for one in keyed}
    found = get_close_matches(name.lower(), names, n=1)
    return f"did you mean {found[0]!r}? Otherwise " if found else ""


def _fingerprint(one: Written, inputs: tuple[InputDefinition, ...]) -> str:
    """The code, and everything beside it that changes what is published."""
    if one.kind is AssetKind.SOURCE:
        code = ""
    else:
        code = of_text(one.sql) if one.sql is not None else of_function(one.function) if one.function else ""
    reads = [
        f"{given.parameter} {given.kind} {given.asset} {given.path} {given.mapping.describe()}"
        f" {given.format} {spelled(dict(sorted(given.options.items())))}"
        f" {of_function(given.mapping.needs) if isinstance(given.mapping, Custom) else ''}"
        for given in inputs
    ]
    return fingerprint(
        "asset",
        one.kind,
        code,
        # How far dimensions reach says which partitions there are, and nothing of what is in one of them.
        repr([(axis.name, axis.kind) for axis in one.partitions.axes]),
        "\n".join(sorted(reads)),
        spelled(dict(sorted(one.parameters.items()))),
        repr((one.write.mode.value, one.write.key, one.write.partition_by, one.write.sort_by)),
        repr(one.schema),
    )
