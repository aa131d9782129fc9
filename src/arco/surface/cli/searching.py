"""`arco search`: what was found, where in it, and what may have been meant where nothing was."""

from shlex import quote

from arco.kernel.errors import NotFound
from arco.read.library import Binding
from arco.read.naming import found_asset
from arco.read.reader import Reader
from arco.read.search import Hit, SearchAnswer, search
from arco.surface.cli.asking import asking
from arco.surface.cli.flags import Where
from arco.surface.cli.printing import print_grid, print_json, say, say_aside


async def show_hits(where: Where, binding: Binding, query: str, *, namespace: str | None, limit: int, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.say_if_empty()
        found = await search(asked.reader, query, namespace=namespace, limit=limit)
        if not found.hits and not asked.is_empty:
            say_aside(f"arco: nothing has {query!r}{_elsewhere(namespace)}; {await _meant(asked.reader, query)}")
    if json:
        print_json(found)
    elif found.hits:
        _say_corrections(found)
        print_grid(("name", "what", "found in", "owner", "description"), map(_row, found.hits), folds=(0, 2, 4))
        say(f"Next: arco assets {quote(found.hits[0].name)}")
    return bool(found.hits)


def _say_corrections(found: SearchAnswer) -> None:
    for word, meant in found.corrected.items():
        say(f"Nothing has {word!r}: this is for {', '.join(meant)}")


def _row(hit: Hit) -> tuple[str | None, ...]:
    fields: dict[str, list[str]] = {}
    for one in hit.matched:
        field, _, word = one.partition(":")
        fields.setdefault(field.replace("_", " "), []).append(word)
    places = ", ".join(f"{field} ({' '.join(words)})" for field, words in fields.items())
    return hit.name, hit.kind, places, ", ".join(hit.owners), hit.description


def _elsewhere(namespace: str | None) -> str:
    return f" in {namespace}; without --namespace everything is searched" if namespace else ""


async def _meant(reader: Reader, query: str) -> str:
    """The names that are nearest to the words, taken as one name."""
    try:
        return f"there is an asset {(await found_asset(reader, query)).asset}"
    except NotFound as error:
        return error.hint
