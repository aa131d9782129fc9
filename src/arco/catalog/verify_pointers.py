"""Pointers that no table has which is looked at by its name: litter of creations, tombstones of what was purged, tables let go.

That they are there is no damage. One that cannot be read is: upkeep leaves it alone and says so at every pass, and whether its
identity may be registered again nobody knows.
"""

from collections.abc import Set as AbstractSet

from arco.catalog.pointer import PointerCodec
from arco.storage.cas import decoded
from arco.storage.keys import PointerKey
from arco.storage.looking import RESTORE, Look
from arco.storage.port import Object

_TODO = f"{RESTORE}; no table that can be loaded or restored has it"


async def verify_nameless_pointers(look: Look, looked_at: AbstractSet[str]) -> None:
    """Every pointer but those of the tables and views that were looked at by name."""

    def is_nameless(key: PointerKey) -> bool:
        return str(key.table) not in looked_at

    code, many = "pointer_unreadable", "nameless_pointers"
    await look.each(code, many, {PointerKey: _judge}, "iceberg_pointers", todo=_TODO, wanted=is_nameless)


def _judge(key: PointerKey, found: Object) -> None:
    decoded(found, PointerCodec(key.table), str(key))
