"""Assets and what they need, as a graph without circles, in one order that depends on nothing but the names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition


@dataclass(frozen=True, slots=True)
class Graph:
    """`order` has upstream before downstream; `stage` counts the steps from the farthest source."""

    assets: Mapping[AssetKey, AssetDefinition]
    order: tuple[AssetKey, ...]
    stage: Mapping[AssetKey, int]
    readers: Mapping[AssetKey, tuple[AssetKey, ...]]

    def inputs(self, key: AssetKey) -> tuple[tuple[InputDefinition, AssetDefinition], ...]:
        """The inputs of an asset that are assets."""
        return tuple((one, self.assets[one.asset]) for one in self.assets[key].inputs if one.asset is not None)

    def upstream(self, keys: Iterable[AssetKey]) -> set[AssetKey]:
        """These and everything they need."""
        return self._reached(keys, lambda key: [upstream.key for _, upstream in self.inputs(key)])

    def downstream(self, keys: Iterable[AssetKey]) -> set[AssetKey]:
        """These and everything that needs them."""
        return self._reached(keys, lambda key: list(self.readers.get(key, ())))

    def _reached(self, keys: Iterable[AssetKey], step: Callable[[AssetKey], list[AssetKey]]) -> set[AssetKey]:
        reached, left = set(keys), list(keys)
        while left:
            for other in step(left.pop()):
                if other not in reached:
                    reached.add(other)
                    left.append(other)
        return reached


def build(assets: Mapping[AssetKey, AssetDefinition]) -> Graph:
    """The graph of a project, or the first thing that is wrong with it, with its place."""
    needs: dict[AssetKey, set[AssetKey]] = {}
    readers: dict[AssetKey, set[AssetKey]] = {key: set() for key in assets}
    for key, asset in assets.items():
        needs[key] = set()
        for one in asset.inputs:
            if one.asset is None:
                continue
            _check_input(asset, one, assets)
            needs[key].add(one.asset)
            readers[one.asset].add(key)
    order = _ordered(needs, readers, assets)
    stage: dict[AssetKey, int] = {}
    for key in order:
        stage[key] = 1 + max((stage[upstream] for upstream in needs[key]), default=-1)
    return Graph(assets, order, stage, {key: tuple(sorted(found, key=str)) for key, found in readers.items()})


def _check_input(asset: AssetDefinition, one: InputDefinition, assets: Mapping[AssetKey, AssetDefinition]) -> None:
    upstream = None if one.asset is None else assets.get(one.asset)
    if upstream is None:
        raise InvalidInput(
            f"{asset.where}: {asset.key} reads {one.asset}, and there is no such asset",
            hint=f"define it, or declare it with source({str(one.asset)!r}); parameter {one.parameter!r} names it",
        )
    try:
        one.mapping.check(upstream.partitions, asset.partitions)
    except InvalidInput as error:
        raise InvalidInput(f"{asset.where}: {asset.key} reads {upstream.key}: {error.message}", hint=error.hint) from error


def _ordered(
    needs: Mapping[AssetKey, set[AssetKey]],
    readers: Mapping[AssetKey, set[AssetKey]],
    assets: Mapping[AssetKey, AssetDefinition],
) -> tuple[AssetKey, ...]:
    """Upstream first; among what is ready, by name."""
    waiting = {key: len(found) for key, found in needs.items()}
    ready = [str(key) for key, count in waiting.items() if not count]
    by_name = {str(key): key for key in assets}
    heapify(ready)
    order: list[AssetKey] = []
    while ready:
        key = by_name[heappop(ready)]
        order.append(key)
        for reader in readers[key]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, str(reader))
    if len(order) < len(assets):
        raise _circle({key: needs[key] for key in assets if key not in set(order)}, assets)
    return tuple(order)


def _circle(needs: Mapping[AssetKey, set[AssetKey]], assets: Mapping[AssetKey, AssetDefinition]) -> InvalidInput:
    """The shortest way to say which assets need each other."""
    key = min(needs, key=str)
    path: list[AssetKey] = []
    while key not in path:
        path.append(key)
        key = min((one for one in needs[key] if one in needs), key=str)
    circle = [*path[path.index(key) :], key]
    return InvalidInput(
        f"{assets[key].where}: these assets need each other: {' -> '.join(str(one) for one in circle)}",
        hint="one of them must not read the other",
    )
