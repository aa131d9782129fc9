"""The values of dynamic dimensions: which partitions an asset has, where its definition leaves that to be said later.

One compare-and-swap document an asset and dimension, under the asset's id: a renamed asset keeps its values. Values stay in the
order in which they were added. Removing one takes its partitions out of plans; what was published of them stays readable.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import AssetId, KeyHash
from arco.kernel.limits import DYNAMIC_VALUE_CHARS_MAX, DYNAMIC_VALUES_MAX
from arco.kernel.partition_key import PartitionKey
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held
from arco.storage.keys import DynamicValuesKey
from arco.storage.port import ObjectStore

Value = str | int | bool


class DynamicValues(msgspec.Struct, frozen=True):
    """The values that are known of one dimension. `dimension` is its name, for people: the object's own is a hash."""

    dimension: str
    values: tuple[Value, ...] = ()


class DynamicValuesCodec:
    format = "arco.dynamic_values"

    def encode(self, value: DynamicValues) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> DynamicValues:
        if format_version != 1:
            raise UnknownFormat(f"values of a dimension of format version {format_version}")
        try:
            return msgspec.convert(fields, DynamicValues)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"values of a dimension with wrong fields: {error}") from error


class DynamicDimensions:
    """The dynamic dimensions of the assets of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy

    async def values(self, asset_id: str, dimension: str) -> tuple[Value, ...]:
        """What is known, in the order in which it was added."""
        held = await self._object(asset_id, dimension).read()
        return () if held is None else held.value.values

    async def add(self, asset_id: str, dimension: str, values: Iterable[Value]) -> tuple[Value, ...]:
        """Make some values known; those that are known already stay where they are. All that are known now."""
        wanted = [_checked(dimension, one) for one in values]

        def changed(before: Held[DynamicValues] | None) -> DynamicValues:
            known = {_marked(one): one for one in (() if before is None else before.value.values)}
            for one in wanted:
                known.setdefault(_marked(one), one)
            if len(known) > DYNAMIC_VALUES_MAX:
                raise TooLarge(
                    f"dimension {dimension} would have {len(known)} values", hint=f"at most {DYNAMIC_VALUES_MAX}"
                )
            return DynamicValues(dimension, tuple(known.values()))

        return (await self._object(asset_id, dimension).update(changed)).value.values

    async def remove(self, asset_id: str, dimension: str, values: Iterable[Value]) -> tuple[Value, ...]:
        """Forget some values. All that are known now."""
        gone = {_marked(_checked(dimension, one)) for one in values}

        def changed(before: Held[DynamicValues] | None) -> DynamicValues:
            known = () if before is None else before.value.values
            return DynamicValues(dimension, tuple(one for one in known if _marked(one) not in gone))

        return (await self._object(asset_id, dimension).update(changed)).value.values

    def _object(self, asset_id: str, dimension: str) -> CasObject[DynamicValues]:
        name = KeyHash(fingerprint("dynamic dimension", dimension))
        key = str(DynamicValuesKey(self._scope, AssetId(asset_id), name))
        return CasObject(self._store, key, DynamicValuesCodec(), self._clock, self._entropy)


def _marked(value: Value) -> tuple[str, Value]:
    """To Python True == 1; to a partition key they are two values."""
    return type(value).__name__, value


def _checked(dimension: str, value: Value) -> Value:
    if isinstance(value, str) and not 0 < len(value) <= DYNAMIC_VALUE_CHARS_MAX:
        raise InvalidInput(
            f"a value of {dimension} has {len(value)} characters", hint=f"1 to {DYNAMIC_VALUE_CHARS_MAX} are allowed"
        )
    PartitionKey({dimension: value})
    return value
