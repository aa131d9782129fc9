"""Settings of a run: other values for the parameters that assets have defaults for.

An asset with another value is another computation, so its fingerprint changes with it: what was published with the default is
stale for a run that sets it, and the other way round.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.quality.builtin import duration_s
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.graph import Graph
from arco.servo.sdk.plain_values import spelled


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
    said = spelled(dict(sorted(changed.items())))
    return replace(
        asset,
        parameters={**asset.parameters, **changed},
        fingerprint=fingerprint("asset with settings", asset.fingerprint, said),
    )


def _value(asset: AssetDefinition, word: str, text: str) -> Any:
    """A text as a value of the default's type."""
    default = asset.parameters[word]
    try:
        return _like(default, text if _reader(default) is not None else _json(text))
    except (ValueError, TypeError, ArithmeticError, InvalidInput) as error:
        how = "; write it as JSON" if isinstance(default, (*_SEVERAL, dict)) else ""
        raise InvalidInput(
            f"{asset.key}.{word}={clip(text)} is not a {type(default).__name__}", hint=f"the default is {default!r}{how}"
        ) from error


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_SEVERAL = (list, tuple, set, frozenset)
_READERS: tuple[tuple[type, Callable[[str], Any]], ...] = (
    (str, str),
    (bytes, str.encode),
    (datetime, datetime.fromisoformat),
    (date, date.fromisoformat),
    (time, time.fromisoformat),
    (timedelta, lambda text: timedelta(seconds=duration_s(text))),
    (Decimal, Decimal),
    (Fraction, Fraction),
    (UUID, UUID),
    (PurePath, PurePath),
    (re.Pattern, re.compile),
)
"""What is written as a text, and how it is read. A datetime is a date as well, so it comes first."""


def _reader(default: Any) -> Callable[[str], Any] | None:
    return next((read for kind, read in _READERS if isinstance(default, kind)), None)


def _like(default: Any, given: Any) -> Any:
    """What JSON or a text says, as a value of the kind that a default is of; its members, too, if the default's are of one."""
    if default is None:
        return given
    read = _reader(default)
    if read is not None:
        if isinstance(default, str) and not isinstance(given, str):
            raise TypeError(given)
        found = read(str(given))
        return type(default)(found) if isinstance(default, PurePath) else found
    if isinstance(default, float) and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if isinstance(default, _SEVERAL) and isinstance(given, list):
        member = _shared(default)
        return type(default)(_like(member, one) for one in given)
    if type(given) is not type(default):
        raise TypeError(given)
    if isinstance(default, dict):
        key, member = _shared(default), _shared(default.values())
        return {_like(key, name): _like(member, one) for name, one in given.items()}
    return given


def _shared(members: Iterable[Any]) -> Any:
    """Any of some values, if all are of one type; None, which is like anything, if they are not, or there is none."""
    known = list(members)
    return known[0] if len({type(one) for one in known}) == 1 else None
