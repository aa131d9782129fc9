"""`arco partitions`: the values of dynamic dimensions, listed, added and removed."""

from collections.abc import Sequence

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput, NotFound
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.dynamic_values import DynamicDimensions, Value
from arco.servo.partitions.axes import ListAxis
from arco.servo.sdk.project import Project
from arco.servo.sdk.selection import find
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_json, say
from arco.surface.cli.projects import At, read_project


async def list_values(at: At, asset: str | None, *, json: bool) -> bool:
    project, where = _loaded(at)
    keys = sorted(project.assets) if asset is None else [find(project.assets, asset)]
    found: dict[str, dict[str, list[Value]]] = {}
    async with opened(where) as workspace:
        ids = await _asset_ids(workspace, project)
        dimensions = _dimensions(workspace)
        for key in keys:
            for name in _dynamic(project, key):
                values = await dimensions.values(ids[str(key)], name) if str(key) in ids else ()
                found.setdefault(str(key), {})[name] = list(values)
    if json:
        print_json(found)
        return True
    for key_text, by_name in found.items():
        for name, known in by_name.items():
            shown = ", ".join(str(one) for one in known)
            say(f"{key_text}  {name}: {counted(len(known), 'value')}{f': {shown}' if known else ''}")
    if not found:
        say("No asset has a dynamic dimension.")
    return True


async def add_values(at: At, asset: str, dimension: str, values: Sequence[str]) -> bool:
    """Make values known. An asset that is not deployed has no identity yet to keep them under."""
    known = await _changed(at, asset, dimension, values, adding=True)
    say(f"{dimension} has {counted(len(known), 'value')} now")
    return True


async def remove_values(at: At, asset: str, dimension: str, values: Sequence[str]) -> bool:
    known = await _changed(at, asset, dimension, values, adding=False)
    say(f"{dimension} has {counted(len(known), 'value')} now; what was published of others stays in the table")
    return True


async def _changed(at: At, asset: str, dimension: str, values: Sequence[str], *, adding: bool) -> tuple[Value, ...]:
    project, where = _loaded(at)
    key = find(project.assets, asset)
    names = _dynamic(project, key)
    if dimension not in names:
        raise InvalidInput(f"{key} has no dynamic dimension {dimension!r}", hint=f"it has {', '.join(names) or 'none'}")
    async with opened(where) as workspace:
        ids = await _asset_ids(workspace, project)
        if str(key) not in ids:
            raise NotFound(
                f"{key} is not deployed yet", hint="arco deploy gives it the identity that values are kept under"
            )
        dimensions = _dimensions(workspace)
        change = dimensions.add if adding else dimensions.remove
        return await change(ids[str(key)], dimension, values)


def _loaded(at: At) -> tuple[Project, Where]:
    file = read_project(at.folder)
    return file.load(), file.where(at.root, at.options)


def _dynamic(project: Project, key: AssetKey) -> list[str]:
    return [axis.name for axis in project.assets[key].partitions.axes if isinstance(axis, ListAxis) and axis.dynamic]


async def _asset_ids(workspace: Opened, project: Project) -> dict[str, str]:
    parts = workspace.catalog.parts
    current = await Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy).current(project.name)
    return {} if current is None else {key: one.asset_id for key, one in current.assets.items()}


def _dimensions(workspace: Opened) -> DynamicDimensions:
    parts = workspace.catalog.parts
    return DynamicDimensions(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
