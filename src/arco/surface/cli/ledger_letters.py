"""`arco ledger letters`: which events could not be folded, and why."""

from arco.fold.dead_letters import letters
from arco.surface.cli.domains import domain_named
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_grid, print_json, say

_NAME = "_catalog/"


async def show_letters(where: Where, domain: str | None, *, limit: int, json: bool) -> None:
    head = None if domain is None else domain_named(domain)
    async with opened(where) as at:
        parts = at.catalog.parts
        page = await letters(parts.tier1.store, parts.scope, head, limit=limit)
    if json:
        print_json(page)
        return
    if not page.items:
        say("every event could be folded")
        return
    rows = [
        (one.head, one.event_id or "the whole segment", one.reason, one.segment.partition(_NAME)[2] or one.segment)
        for one in page.items
    ]
    print_grid(("HEAD", "EVENT", "REASON", "SEGMENT"), rows, folds=(2, 3))
    more = ", and there are more (--limit)" if page.next_cursor else ""
    say(
        f"{counted(len(rows), 'letter')}{more}; what is corrected is sent as a new event, what a newer Arco knows a rebuild takes"
    )
