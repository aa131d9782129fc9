"""`arco runs RUN --outputs`: exactly what a run published, whatever is current now, and what of it was held back."""

from arco.read.library import Binding
from arco.read.runs import run_outputs
from arco.surface.cli.asking import asking
from arco.surface.cli.flags import Where
from arco.surface.cli.partition_spelling import spelled_key, spelled_ranges
from arco.surface.cli.printing import counted, print_grid, print_json, say, size, stamp


async def show_outputs(where: Where, run_id: str, *, json: bool) -> None:
    """A run that has just ended is looked at most: what is not folded yet counts too."""
    async with asking(where, Binding(fresh=True)) as asked:
        found = await run_outputs(asked.reader, run_id)
    if json:
        print_json(found)
        return
    if found.outputs:
        rows = [
            (
                one.asset or one.asset_id,
                spelled_key(one.partition_key) or "all of it",
                "" if one.rows is None else f"{one.rows:,}",
                size(one.bytes),
                str(one.snapshot_id or ""),
                stamp(one.published_at),
            )
            for one in found.outputs
        ]
        print_grid(("asset", "partition", "rows", "size", "snapshot", "published (UTC)"), rows, folds=(0, 1))
    for held in found.held:
        why = ", ".join(held.reasons) or "its gate"
        say(f"held back: {held.asset} {spelled_ranges(held.partitions)} by {why}, kept on branch {held.branch}")
    say(f"run {run_id} published {counted(len(found.outputs), 'partition')}, {len(found.held)} held back")
