"""The project that a command works on: arco.toml, the assets it names, and the workspace they are published to.

    root = "./lake"                 where everything lives; beside the file unless it is an address

    [project]
    name = "shop"
    namespace = "shop"              of assets whose names say none; by default the project's name
    assets = ["assets"]             folders and files with functions and queries
    gate = "strict"                 what failed checks do, unless an asset says otherwise
    warehouse = "default/default"

    [spark]
    master = "local[*]"
    conf = { "spark.driver.memory" = "4g" }

Reading it imports the project's own modules and nothing else: no Spark, no store.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.quality.gates import policy
from arco.servo.sdk.problems import Problems
from arco.servo.sdk.project import Project, examine_project, load_project
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Where
from arco.surface.cli.settings import PROJECT_FILE, read_project_file

_PROJECT_WORDS = {"name", "namespace", "assets", "gate", "warehouse"}
_SPARK_WORDS = {"master", "conf", "jars"}


@dataclass(frozen=True, slots=True)
class At:
    """Which project a command is about, and where it is published to, as it was given."""

    folder: str
    root: str | None
    options: list[str]


@dataclass(frozen=True, slots=True)
class SparkWords:
    """What the file says about Spark, as it is written there."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Path | None = None


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

    def load(self) -> Project:
        """Import the project's modules and check them against each other."""
        return load_project(
            self.folder, name=self.name, namespace=self.namespace, assets=self.assets, gate=policy(self.gate)
        )

    def examine(self) -> tuple[Project | None, Problems]:
        """The same, with everything that is wrong with it."""
        return examine_project(
            self.folder, name=self.name, namespace=self.namespace, assets=self.assets, gate=policy(self.gate)
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
    jars = _text(spark, "jars", "")
    return ProjectFile(
        folder=place.resolve(),
        name=name,
        namespace=_text(said, "namespace", name),
        assets=_texts(said, "assets", ("assets",)),
        gate=_text(said, "gate", "strict"),
        warehouse=_text(said, "warehouse", DEFAULT_WAREHOUSE),
        spark=SparkWords(
            _text(spark, "master", "local[*]"),
            {word: str(value).lower() if isinstance(value, bool) else str(value) for word, value in _conf(spark).items()},
            place.resolve() / jars if jars else None,
        ),
    )


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
