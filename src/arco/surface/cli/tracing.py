"""`arco lineage`: what an asset is made of and what is made of it, as trees; of assets, or of partitions."""

from collections.abc import Iterable

from arco.kernel.limits import LINEAGE_DEPTH_MAX
from arco.read.graph import Direction
from arco.read.library import Binding
from arco.read.lineage import Extras, Lineage, Node, lineage
from arco.read.partition_lineage import PartitionLineage, Step, partition_lineage
from arco.surface.cli.asking import Asked, asking
from arco.surface.cli.flags import Where
from arco.surface.cli.partition_spelling import spelled_key, spelled_ranges
from arco.surface.cli.printing import print_json, say
from arco.surface.cli.trees import Branch, Part, print_tree

_DEPTH = 3
_TITLES = {Direction.UPSTREAM: "made of", Direction.DOWNSTREAM: "goes into"}
_NOTHING = {Direction.UPSTREAM: "nothing that is known", Direction.DOWNSTREAM: "nothing yet"}


async def show_lineage(
    where: Where,
    binding: Binding,
    name: str,
    *,
    ways: tuple[bool, bool],
    depth: int | None,
    partition: str | None,
    columns: bool,
    json: bool,
) -> bool:
    chosen = [way for way, wanted in zip((Direction.UPSTREAM, Direction.DOWNSTREAM), ways, strict=True) if wanted]
    far = _DEPTH if depth is None else depth
    async with asking(where, binding) as asked:
        asked.need_state()
        if partition is not None:
            steps = [await partition_lineage(asked.reader, name, partition, way, depth=far) for way in chosen]
            _print_partitions(steps, json=json)
            return True
        # One step further than asked, so that a tree can say where it goes on.
        looked = far + 1 if not json and 1 <= far < LINEAGE_DEPTH_MAX else far
        found = [await _walked(asked, name, way, looked, columns=columns) for way in chosen]
    if json:
        print_json({one.direction: one for one in found})
        return True
    for one in found:
        print_tree(_tree(one, far))
        if one.truncated:
            say("There is more: this is where looking ended.")
    if columns and not any(one.columns for one in found):
        say("No column lineage is known here: OpenLineage and POST /api/v1/lineage say which columns come of which.")
    return True


async def _walked(asked: Asked, name: str, way: Direction, depth: int, *, columns: bool) -> Lineage:
    return await lineage(asked.reader, name, way, depth=depth, extras=Extras(columns=columns))


def _tree(found: Lineage, depth: int) -> Branch:
    """Every node once with what lies beyond it, where it is nearest; elsewhere by its name alone."""
    nodes = {node.id: node for node in found.nodes}
    beyond: dict[str, list[str]] = {}
    mapped: dict[tuple[str, str], list[str]] = {}
    said = _columns_by_edge(found)
    for edge in found.edges:
        ends = (edge.target_id, edge.source_id)
        near, far = ends if found.direction is Direction.UPSTREAM else ends[::-1]
        if far not in beyond.setdefault(near, []):
            beyond[near].append(far)
        mapped.setdefault((near, far), []).extend(said.get(edge.edge_id, ()))
    grown = {found.asset_id}

    def grow(near: str, level: int) -> list[Branch]:
        if level > depth:
            more = len(beyond.get(near, ()))
            return [Branch([(f"… {more} more: --depth {depth + 1}", "dim")])] if more else []
        branches = []
        for one in sorted(beyond.get(near, ()), key=lambda node: nodes[node].name):
            here = one not in grown and nodes[one].depth == level
            grown.update([one] if here else [])
            branch = Branch(_parts(nodes[one], again=not here))
            branch.below += [Branch([(text, "cyan")]) for text in dict.fromkeys(mapped[near, one])]
            branch.below += grow(one, level + 1) if here else []
            branches.append(branch)
        return branches

    root = Branch([(found.asset, "bold"), (f"  {_TITLES[found.direction]}", "dim")])
    root.below = grow(found.asset_id, 1) or [Branch([(_NOTHING[found.direction], "dim")])]
    return root


def _parts(node: Node, *, again: bool) -> list[Part]:
    kind = f"  {node.kind}" if node.kind != "asset" else ""
    return [(node.name, ""), (f"{kind}{'  (again)' if again else ''}", "dim")]


def _columns_by_edge(found: Lineage) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for one in found.columns:
        made = f"{one.transform}({one.source_column})" if one.transform else one.source_column
        sure = f", confidence {one.confidence}" if one.confidence and one.confidence != "high" else ""
        said.setdefault(one.edge_id, []).append(f"{one.target_column} = {made}{sure}")
    return said


def _print_partitions(found: list[PartitionLineage], *, json: bool) -> None:
    if json:
        print_json({one.direction: one for one in found})
        return
    for one in found:
        print_tree(_partition_tree(one))
        if one.truncated:
            say("There is more: this is where looking ended.")


def _partition_tree(found: PartitionLineage) -> Branch:
    """Executions level by level: each hangs on the assets of the level before that it made, or was made of."""
    key = spelled_key(found.partition_key)
    root = Branch([(found.asset, "bold"), (f"  {key}", ""), (f"  {_TITLES[found.direction]}", "dim")])
    up = found.direction is Direction.UPSTREAM
    grown: dict[tuple[int, str], Branch] = {(0, found.asset_id): root}
    for step in found.steps:
        near, far = (step.target_id, step.source_id) if up else (step.source_id, step.target_id)
        branch = Branch(_step_parts(step, up=up))
        grown.setdefault((step.depth, far), branch)
        parent = grown.get((step.depth - 1, near), root)
        if not any(list(branch.parts) == list(other.parts) for other in parent.below):
            parent.below.append(branch)
    if not root.below:
        root.below.append(Branch([(_NOTHING[found.direction], "dim")]))
    return root


def _step_parts(step: Step, *, up: bool) -> list[Part]:
    name, ranges = (step.source, step.source_partitions) if up else (step.target, step.target_partitions)
    told: Iterable[str] = (
        f"snapshot {step.source_snapshot_id}" if up and step.source_snapshot_id else "",
        f"run {step.run_id}",
        "" if step.exact else "ranges of the whole task",
    )
    return [(name, ""), (f"  {spelled_ranges(ranges) or 'all of it'}", ""), (f"  {', '.join(t for t in told if t)}", "dim")]
