"""The partition that somebody names, by the dimensions of its asset."""

from arco.read.answers import document
from arco.read.facts import facts
from arco.read.naming import found_asset
from arco.read.reader import Reader
from arco.surface.cli.partition_spelling import key_of


async def named_partition(reader: Reader, name: str, partition: str) -> str:
    """Its stored key. Whether there is such a partition is another question."""
    named = await found_asset(reader, name)
    known = (await facts(reader, [named.asset_id]))[named.asset_id]
    return key_of(partition, document(known.row["partitioning"]) or [])
