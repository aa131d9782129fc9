"""Assets and what they need, as a graph without circles, in one order that depends on nothing but the names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind, why_not_changes
from arco.servo.sdk.problems import Problems


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


def examine(assets: Mapping[AssetKey, AssetDefinition], problems: Problems) -> Graph | None:
    """The graph of a project; None if assets need each other."""
    needs: dict[AssetKey, set[AssetKey]] = {}
    readers: dict[AssetKey, set[AssetKey]] = {key: set() for key in assets}
    for key, asset in assets.items():
        needs[key] = set()
        for one in asset.inputs:
            if one.asset is None or one.asset not in assets:
                continue  # what is not there was said when names were looked up
            with problems.kept():
                _check_input(asset, one, assets[one.asset])
            needs[key].add(one.asset)
            readers[one.asset].add(key)
    order = _ordered(needs, readers, assets, problems)
    if order is None:
        return None
    stage: dict[AssetKey, int] = {}
    for key in order:
        stage[key] = 1 + max((stage[upstream] for upstream in needs[key]), default=-1)
    return Graph(assets, order, stage, {key: tuple(sorted(found, key=str)) for key, found in readers.items()})


def _check_input(asset: AssetDefinition, one: InputDefinition, upstream: AssetDefinition) -> None:
    try:
        one.mapping.check(upstream.partitions, asset.partitions)
        if one.kind is InputKind.CHANGES:
            _check_changes(asset, upstream)
    except InvalidInput as error:
        raise InvalidInput(f"{asset.where}: {asset.key} reads {upstream.key}: {error.message}", hint=error.hint) from error


def _check_changes(asset: AssetDefinition, upstream: AssetDefinition) -> None:
    why = why_not_changes(asset.write.mode, has_partitions=bool(asset.partitions.axes))
    if why is not None:
        raise InvalidInput(
            f"changes_of gives only the rows that are new, {why}",
            hint=f"say mode='append' or 'merge', and leave partitions out; or read all of it: every({str(upstream.key)!r})",
        )


def _ordered(
    needs: Mapping[AssetKey, set[AssetKey]],
    readers: Mapping[AssetKey, set[AssetKey]],
    assets: Mapping[AssetKey, AssetDefinition],
    problems: Problems,
) -> tuple[AssetKey, ...] | None:
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
    if len(order) == len(assets):
        return tuple(order)
    _say_circles({key: needs[key] - set(order) for key in assets if key not in set(order)}, assets, problems)
    return None


def _say_circles(
    needs: dict[AssetKey, set[AssetKey]], assets: Mapping[AssetKey, AssetDefinition], problems: Problems
) -> None:
    """Every group of assets that need each other, by one way around each."""
    while needs:
        key = min(needs, key=str)
        path: list[AssetKey] = []
        while key not in path and needs[key]:
            path.append(key)
            key = min(needs[key], key=str)
        if key in path:
            circle = [*path[path.index(key) :], key]
            problems.add(
                f"{assets[key].where}: these assets need each other: {' -> '.join(str(one) for one in circle)}",
                hint="one of them must not read the other",
            )
            gone = set(circle)
        else:
            gone = {key}  # it needs nothing that is left: not part of a circle
        needs = {one: needed - gone for one, needed in needs.items() if one not in gone}
