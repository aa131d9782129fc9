"""Which assets a person means: names, namespaces, tags, and what lies upstream or downstream of them.

    orders_daily        one asset; the namespace may be left out if the name is unique
    shop.*              everything in a namespace
    tag:finance         everything with a tag
    +orders_daily       it and everything it needs        orders_daily+     it and everything that needs it
    a,b  or  a b        these together

Nothing given means everything.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.servo.sdk.graph import Graph


def select(graph: Graph, words: Iterable[str]) -> set[AssetKey]:
    """The assets that are to be made; sources are never among them."""
    parts = [part for word in words for part in word.replace(",", " ").split()]
    chosen: set[AssetKey] = set()
    for part in parts:
        chosen |= _selected(graph, part)
    keys = chosen if parts else set(graph.assets)
    return {key for key in keys if not graph.assets[key].is_source}


def _selected(graph: Graph, part: str) -> set[AssetKey]:
    core = part.removeprefix("+").removesuffix("+")
    found = _matched(graph, core)
    result = set(found)
    if part.startswith("+"):
        result |= graph.upstream(found)
    if part.endswith("+"):
        result |= graph.downstream(found)
    return result


def _matched(graph: Graph, core: str) -> set[AssetKey]:
    if core.startswith("tag:"):
        tag = core.removeprefix("tag:")
        found = {key for key, asset in graph.assets.items() if tag in asset.tags}
        if not found:
            tags = sorted({tag for asset in graph.assets.values() for tag in asset.tags})
            raise NotFound(f"no asset has the tag {clip(tag)!r}", hint=f"there are {', '.join(tags) or 'no tags'}")
        return found
    if core.endswith(".*"):
        namespace = core.removesuffix(".*")
        found = {key for key in graph.assets if key.namespace == namespace}
        if not found:
            raise NotFound(f"no asset is in the namespace {clip(namespace)!r}")
        return found
    return {find(graph.assets, core)}


def find(assets: Iterable[AssetKey], text: str) -> AssetKey:
    """One asset by its full name, or by its name alone where that is enough."""
    keys = list(assets)
    found = [key for key in keys if str(key) == text] or [key for key in keys if key.name == text]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{clip(text)!r} names several assets", hint=f"one of {', '.join(sorted(map(str, found)))}")
    names = {key.name: str(key) for key in keys} | {str(key): str(key) for key in keys}
    alike = [names[one] for one in get_close_matches(text.lower(), names, n=5)]
    near = list(dict.fromkeys([*sorted(str(key) for key in keys if text.lower() in str(key).lower()), *alike]))[:5]
    raise NotFound(
        f"there is no asset {clip(text)!r}", hint=f"near it: {', '.join(near)}" if near else "arco plan lists them"
    )
