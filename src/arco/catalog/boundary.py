"""The boundary of tier 1: creations whose identity was made before it are refused, whenever they arrive (PROTOCOLS U1).

The failure this prevents, in order:
  1. a creation writes its pointer, and stalls before it takes its name
  2. a collector finds a pointer without a name, old enough to be litter, and deletes it
  3. the creation wakes up and takes its name: there is a table without a pointer

So the boundary is raised first, by compare-and-swap of the manifest that every creation has to swing. What was swung before is
seen in the names that are read after it; what comes later is refused. Raising it also kills every swing that was prepared
against an older manifest: what only such a swing could have named will never be named.
"""

import msgspec

from arco.catalog.tier1 import Tier1
from arco.kernel.errors import Conflict, OutcomeUnknown
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.storage.cas import Overtaken, Swung
from arco.storage.port import Lost, Unknown


async def raise_boundary(tier1: Tier1, to_ms: int) -> None:
    """Raise it, by a write of the manifest even where it is there already. Nothing where there is no catalog yet."""
    for _ in range(SWAP_ATTEMPTS_MAX):
        await tier1.reread()
        held = tier1.held
        if held is None:
            return
        raised = msgspec.structs.replace(held.value, boundary_ms=max(to_ms, held.value.boundary_ms))
        match await tier1.head.swap(held, raised):
            case Swung(after) | Overtaken(after):
                await tier1.advance(after)
                return
            case Lost():
                continue
            case Unknown(reason):
                raise OutcomeUnknown(f"the boundary of {tier1.head.key} may be raised: {reason}", hint="run upkeep again")
    raise Conflict("the catalog was changed by others all the time", hint="run upkeep again")
