"""`arco validate`: what a project is, and everything that is wrong with it, without Spark and without a store."""

import re
from pathlib import Path
from typing import Any

import typer

from arco.kernel.errors import ArcoError
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind
from arco.servo.sdk.problems import own_hint
from arco.servo.sdk.project import Project
from arco.surface.cli.printing import counted, print_grid, print_json, say, shown
from arco.surface.cli.projects import ProjectFile, read_project

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)


def validate(folder: str, *, json: bool) -> bool:
    file = read_project(folder)
    project, problems = file.examine()
    said = [_problem(one, file, folder) for one in problems.found]
    if json:
        print_json({"project": file.name, **_described(project), "problems": said})
    elif project is None:
        for one in said:
            place = f"{one['file']}:{one['line']}: " if one["file"] else ""
            say(f"{place}{one['message']}\n    {one['hint']}" if one["hint"] else f"{place}{one['message']}")
        typer.echo(f"arco: project {shown(file.name)} has {counted(len(said), 'problem')}", err=True)
    else:
        _print(project)
    return project is not None


def _print(project: Project) -> None:
    rows = [
        (
            str(project.graph.stage[key]),
            str(key),
            project.assets[key].kind.value,
            _partitions(project.assets[key].partitions),
            ", ".join(_read(one) for one in project.assets[key].inputs if one.kind is not InputKind.CHECK),
            ", ".join(check.name for check in project.assets[key].checks),
        )
        for key in sorted(project.graph.order, key=lambda key: (project.graph.stage[key], str(key)))
    ]
    print_grid(("stage", "asset", "kind", "partitions", "reads", "checks"), rows, folds=(1, 4, 5))
    checks = sum(len(one.checks) for one in project.assets.values())
    schedules = f"{counted(len(project.schedules), 'schedule')}, " if project.schedules else ""
    say(
        f"project {project.name}: {counted(len(rows), 'asset')}, {counted(checks, 'check')}, {schedules}no problems; "
        f"code version {project.code_version}"
    )


def _partitions(partitioning: Partitioning) -> str:
    return ", ".join(f"{axis.name} ({axis.kind})" for axis in partitioning.axes)


def _read(one: InputDefinition) -> str:
    name = str(one.asset or one.path)
    mapping = one.mapping.describe()
    match one.kind:
        case InputKind.CHANGES:
            return f"changes of {name}"
        case InputKind.FILES:
            return f"files {name}"
        case _:
            return name if mapping == _SAME else f"{name} ({mapping})"


_SAME = InputDefinition("x").mapping.describe()


def _described(project: Project | None) -> dict[str, Any]:
    if project is None:
        return {"code_version": None, "assets": [], "schedules": {}}
    order = sorted(project.graph.order, key=lambda key: (project.graph.stage[key], str(key)))
    assets = [_asset(project.assets[key], project.graph.stage[key], project.folder) for key in order]
    schedules = {name: one.document() for name, one in sorted(project.schedules.items())}
    return {"code_version": project.code_version, "assets": assets, "schedules": schedules}


def _asset(asset: AssetDefinition, stage: int, folder: Path) -> dict[str, Any]:
    return {
        "key": str(asset.key),
        "kind": asset.kind.value,
        "stage": stage,
        "file": asset.where.file.removeprefix(f"{folder}/"),
        "line": asset.where.line,
        "description": asset.description,
        "partitions": asset.partitions.describe(),
        "inputs": [
            {
                "parameter": one.parameter,
                "kind": one.kind.value,
                "asset": None if one.asset is None else str(one.asset),
                "path": one.path,
                "mapping": one.mapping.describe(),
            }
            for one in asset.inputs
        ],
        "checks": [check.describe() for check in asset.checks],
        "mode": asset.write.mode.value,
        "owners": list(asset.owners),
        "tags": list(asset.tags),
    }


def _problem(error: ArcoError, file: ProjectFile, folder: str) -> dict[str, Any]:
    """A problem with its place, as it is named from where the command was called."""
    prefix = "" if folder == "." else f"{folder.rstrip('/')}/"
    message, hint = (text.replace(f"{file.folder}/", prefix) for text in (error.message, own_hint(error)))
    placed = _PLACE.fullmatch(message)
    if placed is None:
        return {"file": None, "line": None, "message": message, "hint": hint}
    return {"file": placed["file"], "line": int(placed["line"]), "message": placed["message"], "hint": hint}
