"""The project that a command works on: arco.toml, the assets it names, and the workspace they are published to.

    root = "./lake"                 where everything lives; beside the file unless it is an address

    [project]
    name = "shop"
    namespace = "shop"              of assets whose names say none; by default the project's name
    assets = ["assets"]             folders and files with functions and queries
    gate = "strict"                 what failed checks do, unless an asset says otherwise
    warehouse = "default/default"
    defer_to = "prod"               what is not built in this workspace is read from that one

    [schedules.nightly]
    cron = "30 2 * * *"
    timezone = "Europe/Berlin"
    make = ["orders+"]

    [pools]
    warehouse = 3                   tasks that ask for it by resources={"warehouse": 1}, at once, in all runs

    [workers]
    keys = ["env:ARCO_TASK_KEY"]    what schedulers sign tasks with; workers then run nothing else
    isolate = true                  every task in a process of its own, with keys of its own; `--isolate` does the same
    vend_role = "arn:aws:iam::…"    the role whose sessions those keys are; vend_endpoint, vend_external_id, vend_duration

    [spark]
    master = "local[*]"             or spark://…, k8s://…, yarn, sc://…; `--spark` of a command wins
    conf = { "spark.driver.memory" = "4g" }
    jars = "jars"                   a folder: every jar in it is brought along

Reading it imports the project's own modules and nothing else: no Spark, no store.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arco.fold.spark_fixed import spelled
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import VENDED_DURATION_S
from arco.kernel.scope import Scope
from arco.kernel.secret import SecretRef
from arco.quality.gates import policy
from arco.servo.sdk.definitions import CallSite
from arco.servo.sdk.problems import Problems
from arco.servo.sdk.project import Project, examine_project, load_project
from arco.servo.sdk.schedules import WrittenSchedule
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Where
from arco.surface.cli.settings import PROJECT_FILE, load_environment, read_project_file

_PROJECT_WORDS = {"name", "namespace", "assets", "gate", "warehouse", "defer_to"}
_WORKER_WORDS = {"keys", "isolate", "vend_role", "vend_endpoint", "vend_external_id", "vend_duration", "variables"}
_SPARK_WORDS = {"master", "conf", "jars"}


@dataclass(frozen=True, slots=True)
class At:
    """Which project a command is about, and where it is published to, as it was given."""

    folder: str
    root: str | None
    options: list[str]
    master: str | None = None


@dataclass(frozen=True, slots=True)
class SparkWords:
    """What the file says about Spark, as it is written there."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Path | None = None


@dataclass(frozen=True, slots=True)
class WorkerWords:
    """What the file says about workers that keep tasks apart."""

    isolate: bool = False
    role: str | None = None
    endpoint: str | None = None
    external_id: str | None = None
    duration_s: int = VENDED_DURATION_S
    variables: tuple[str, ...] = ()
    """What tasks find of the worker's environment, by name."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What arco.toml says of a project."""

    folder: Path
    name: str
    namespace: str
    assets: tuple[str, ...]
    gate: str
    warehouse: str
    spark: SparkWords
    schedules: tuple[WrittenSchedule, ...] = ()
    pools: Mapping[str, float] = field(default_factory=dict)
    task_keys: tuple[str, ...] = ()
    workers: WorkerWords = field(default_factory=WorkerWords)
    defer_to: Scope | None = None
    lender_is_asked_for: bool = False
    """Whether a flag or the environment says so: what a file says is for every workspace, also before the first run there."""

    def load(self) -> Project:
        """Import the project's modules and check them against each other."""
        return load_project(
            self.folder,
            name=self.name,
            namespace=self.namespace,
            assets=self.assets,
            gate=policy(self.gate),
            schedules=self.schedules,
        )

    def examine(self) -> tuple[Project | None, Problems]:
        """The same, with everything that is wrong with it."""
        return examine_project(
            self.folder,
            name=self.name,
            namespace=self.namespace,
            assets=self.assets,
            gate=policy(self.gate),
            schedules=self.schedules,
        )

    def where(self, root: str | None, options: list[str] | None) -> Where:
        """The workspace that its assets are published to."""
        return Where.of(root, options, self.warehouse, folder=self.folder)


def read_project(folder: str = ".") -> ProjectFile:
    """The project of a folder."""
    place = Path(folder)
    if not (place / PROJECT_FILE).is_file():
        raise InvalidInput(
            f"there is no {PROJECT_FILE} in {place.resolve()}", hint="arco init writes a project to begin with"
        )
    document = read_project_file(place)
    said, spark = _table(document, "project", _PROJECT_WORDS), _table(document, "spark", _SPARK_WORDS)
    name = _text(said, "name", place.resolve().name)
    chosen = load_environment()
    scope = scope_named(chosen.workspace, Scope.parse_warehouse(_text(said, "warehouse", DEFAULT_WAREHOUSE)))
    lender = chosen.defer_to or _text(said, "defer_to", "")
    return ProjectFile(
        folder=place.resolve(),
        name=name,
        namespace=_text(said, "namespace", name),
        assets=_texts(said, "assets", ("assets",)),
        gate=_text(said, "gate", "strict"),
        warehouse=scope.warehouse,
        spark=_spark(spark, place.resolve()),
        schedules=_schedules(document, place.resolve() / PROJECT_FILE),
        pools=_pools(document),
        task_keys=_task_keys(_table(document, "workers", _WORKER_WORDS)),
        workers=_workers(_table(document, "workers", _WORKER_WORDS)),
        defer_to=_lender(lender, scope, is_asked=chosen.defer_to is not None),
        lender_is_asked_for=chosen.defer_to is not None,
    )


def spark_words(folder: Path = Path()) -> SparkWords:
    """What the file of a folder says about Spark, whatever else it is about; the defaults where there is none."""
    return _spark(_table(read_project_file(folder), "spark", _SPARK_WORDS), folder.resolve())


def _spark(said: Mapping[str, Any], folder: Path) -> SparkWords:
    jars = _text(said, "jars", "")
    conf = {word: spelled(value) for word, value in _conf(said).items()}
    return SparkWords(_text(said, "master", "local[*]"), conf, folder / jars if jars else None)


def _pools(document: Mapping[str, Any]) -> dict[str, float]:
    found = document.get("pools", {})
    if not isinstance(found, dict):
        raise InvalidInput(f"pools in {PROJECT_FILE} is not a table", hint="write [pools] and one size a line")
    for name, size in found.items():
        if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < float("inf"):
            raise InvalidInput(f"pool {clip(name)!r} in {PROJECT_FILE} has size {size!r}", hint="a number above zero")
    return {name: float(size) for name, size in found.items()}


def _task_keys(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the keys are; never a key itself, which everybody who reads the file would know."""
    named = _texts(said, "keys", ("",)) if "keys" in said else ()
    for one in named:
        SecretRef.parse(one)
    return named


def _workers(said: Mapping[str, Any]) -> WorkerWords:
    isolate, duration = said.get("isolate", False), said.get("vend_duration", VENDED_DURATION_S)
    if not isinstance(isolate, bool):
        raise InvalidInput(f"isolate in {PROJECT_FILE} is not true or false", hint="write isolate = true")
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise InvalidInput(f"vend_duration in {PROJECT_FILE} is no number of seconds", hint="write vend_duration = 3600")
    role, endpoint, external_id = (_text(said, f"vend_{word}", "") or None for word in ("role", "endpoint", "external_id"))
    variables = _texts(said, "variables", ("",)) if "variables" in said else ()
    return WorkerWords(isolate, role, endpoint, external_id, duration, variables)


def scope_named(name: str | None, beside: Scope) -> Scope:
    """A workspace as a flag names it: by its own name, in the same tenant, or as tenant/workspace."""
    if not name:
        return beside
    return Scope.parse_warehouse(name) if "/" in name else Scope.of(beside.tenant, name)


def _lender(name: str, scope: Scope, *, is_asked: bool) -> Scope | None:
    """Whom to defer to. What a file says for all workspaces is no word about the one that it names."""
    found = scope_named(name, scope) if name else None
    return None if found == scope and not is_asked else found


def _schedules(document: Mapping[str, Any], file: Path) -> tuple[WrittenSchedule, ...]:
    """What the file says of schedules, each with the line that it begins in."""
    found = document.get("schedules", {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise InvalidInput(f"schedules in {PROJECT_FILE} are not tables", hint="write [schedules.nightly]")
    lines = file.read_text().splitlines() if found else []
    return tuple(
        WrittenSchedule(name, CallSite(str(file), _line_of(f"schedules.{name}", lines)), given)
        for name, given in found.items()
    )


def _line_of(heading: str, lines: list[str]) -> int:
    return next((number for number, line in enumerate(lines, 1) if line.strip().startswith(f"[{heading}]")), 1)


def _table(document: Mapping[str, Any], name: str, known: set[str]) -> Mapping[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} in {PROJECT_FILE} is not a table", hint=f"write [{name}] and one setting a line")
    unknown = sorted(set(found) - known)
    if unknown:
        raise InvalidInput(
            f"[{name}] in {PROJECT_FILE} has no setting {unknown[0]!r}", hint=f"one of {', '.join(sorted(known))}"
        )
    return found


def _conf(spark: Mapping[str, Any]) -> Mapping[str, Any]:
    found = spark.get("conf", {})
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise InvalidInput(
            f"spark.conf in {PROJECT_FILE} is not a table of settings", hint='write "spark.some.word" = "value"'
        )
    return found


def _text(said: Mapping[str, Any], word: str, default: str) -> str:
    value = said.get(word, default)
    if not isinstance(value, str):
        raise InvalidInput(f"{word} in {PROJECT_FILE} is not a text", hint=f'write {word} = "…"')
    return value


def _texts(said: Mapping[str, Any], word: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = said.get(word, list(default))
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise InvalidInput(f"{word} in {PROJECT_FILE} is not a list of texts", hint=f'write {word} = ["…"]')
    return tuple(value)
