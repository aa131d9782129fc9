"""The table behind an asset: the one it names, or the one of its own key."""

from arco.servo.sdk.definitions import AssetDefinition

QUARANTINE_SUFFIX = "__quarantine"

TableName = tuple[tuple[str, ...], str]
"""A namespace's levels, and a name."""


def table_of(asset: AssetDefinition) -> TableName:
    """Where the rows of an asset are."""
    *levels, name = (asset.table or str(asset.key)).split(".")
    return tuple(levels), name


def quarantine_of(asset: AssetDefinition) -> TableName:
    """Where the rows that its checks set aside are."""
    levels, name = table_of(asset)
    return levels, f"{name}{QUARANTINE_SUFFIX}"
