"""Settings of a run: other values for the parameters that assets have defaults for.

An asset with another value is another computation, so its fingerprint changes with it: what was published with the default is
stale for a run that sets it, and the other way round.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.graph import Graph


def overridden(graph: Graph, given: Mapping[str, str]) -> Graph:
    """A graph with other settings: `limit=10` for all assets that have one, `shop.orders.limit=10` for one."""
    if not given:
        return graph
    used: set[str] = set()
    assets = {}
    for key, asset in graph.assets.items():
        mine = {
            word: name
            for word in asset.parameters
            for name in (word, f"{key.name}.{word}", f"{key}.{word}")
            if name in given
        }
        used.update(mine.values())
        assets[key] = _with(asset, {word: _value(asset, word, given[name]) for word, name in mine.items()})
    unknown = sorted(set(given) - used)
    if unknown:
        known = sorted({f"{key}.{word}" for key, asset in graph.assets.items() for word in asset.parameters})
        raise InvalidInput(f"no asset has a parameter {clip(unknown[0])!r}", hint=f"there are {', '.join(known) or 'none'}")
    return replace(graph, assets=assets)


def _with(asset: AssetDefinition, values: Mapping[str, Any]) -> AssetDefinition:
    changed = {word: value for word, value in values.items() if value != asset.parameters[word]}
    if not changed:
        return asset
    said = json.dumps(changed, sort_keys=True, default=str)
    return replace(
        asset,
        parameters={**asset.parameters, **changed},
        fingerprint=fingerprint("asset with settings", asset.fingerprint, said),
    )


def _value(asset: AssetDefinition, word: str, text: str) -> Any:
    """A text as a value of the default's type."""
    default = asset.parameters[word]
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if default is not None and type(value) is not type(default):
        raise InvalidInput(
            f"{asset.key}.{word}={clip(text)} is not a {type(default).__name__}", hint=f"the default is {default!r}"
        )
    return value
