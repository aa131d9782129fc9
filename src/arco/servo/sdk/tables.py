"""The table behind an asset: the one it names, or the one of its own key."""

from arco.kernel.errors import InvalidInput
from arco.servo.sdk.definitions import AssetDefinition

QUARANTINE_SUFFIX = "__quarantine"

TableName = tuple[tuple[str, ...], str]
"""A namespace's levels, and a name."""


def table_of(asset: AssetDefinition) -> TableName:
    """Where the rows of an asset are."""
    if asset.table is None:
        return (asset.key.namespace,), asset.key.name
    from arco.catalog.spelling import parse_name  # noqa: PLC0415 - it loads the catalog, and few assets name a table

    try:
        return parse_name(asset.table)
    except InvalidInput as error:
        raise InvalidInput(f"{asset.where}: table of {asset.key}: {error.message}", hint=error.hint) from error


def quarantine_of(asset: AssetDefinition) -> TableName:
    """Where the rows that its checks set aside are."""
    levels, name = table_of(asset)
    return levels, f"{name}{QUARANTINE_SUFFIX}"
