"""`arco drop`, `arco undrop` and `arco rename`."""

import sys

import typer

from arco.catalog.inventory import DropRef
from arco.catalog.model import Entry
from arco.catalog.spelling import parse_name, spelled
from arco.kernel.errors import InvalidInput
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import say


async def drop(where: Where, name: str, *, purge: bool, yes: bool) -> bool:
    place = parse_name(name)
    async with opened(where) as at:
        entry = await at.need(place)
        if not yes and not _confirmed(entry, purge=purge):
            say("Nothing was changed.")
            return False
        await at.inventory.drop(place, purge=purge, key=at.key("drop"), author=at.author)
        dropped = (await at.inventory.names()).dropped.get(entry.uuid)
    say(f"Dropped {entry.kind} {spelled(*place)}.")
    if dropped is not None and purge:
        say("Its files will be deleted by upkeep.")
    elif dropped is not None:
        say(f"Restore it with: arco undrop --drop-id {dropped.drop_id}")
    return True


def _confirmed(entry: Entry, *, purge: bool) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("there is nobody to ask whether to drop it", hint="pass --yes")
    what = f"{entry.format} {entry.kind} {spelled(entry.namespace, entry.name)} at {entry.location}"
    return typer.confirm(f"Drop {what}{' and delete its files' if purge else ''}?")


async def undrop(where: Where, name: str | None, new_name: str | None, drop_id: str | None) -> bool:
    if name is None and drop_id is None:
        raise InvalidInput("what is to be restored is not said", hint="give its name, or --drop-id")
    lost = DropRef(None if name is None else parse_name(name), drop_id)
    to = None if new_name is None else parse_name(new_name)
    async with opened(where) as at:
        place = await at.inventory.undrop(lost, to, at.key("undrop"), at.author)
    say(f"Restored {spelled(*place)}.")
    return True


async def rename(where: Where, name: str, new_name: str) -> bool:
    source, destination = parse_name(name), parse_name(new_name)
    async with opened(where) as at:
        entry = await at.need(source)
        await at.inventory.rename(source, destination, at.key("rename"), at.author)
    say(f"Renamed {entry.kind} {spelled(*source)} to {spelled(*destination)}.")
    return True
