"""A store that fails for a while: every request for some time, where the world's own faults meet one request at a time.

Read-back resolves a single lost reply. Only an outage that outlasts its attempts leaves a caller with an outcome that nobody
knows, or with a refusal, and shows what the code does next.
"""

import asyncio
from enum import IntEnum

from arco.kernel.errors import Throttled, Unavailable
from arco.kernel.limits import READBACK_ATTEMPTS_MAX
from arco.storage.port import Condition, Object, Outcome, Unknown
from arco_sim.choices import Weights
from arco_sim.world import Env, SimStore

_LATE_S = 200.0


class Outage(IntEnum):
    """What becomes of a write during an outage."""

    NONE = 0
    BUSY = 1  # refused, every time
    DEAF = 2  # never done, and no answer
    MUTE = 3  # done, and no answer
    LATE = 4  # done long after the caller gave up, and no answer


_BEGIN = Weights(0.90, 0.025, 0.025, 0.025, 0.025)


class FailingStore(SimStore):
    """An incarnation's store that now and then has an outage, long enough for one or two writes to be given up."""

    def __init__(self, env: Env) -> None:
        super().__init__(env.world, env.incarnation)
        self._env = env
        self._outage = Outage.NONE
        self._puts_left = 0
        self._late: list[asyncio.Task[Outcome]] = []

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        self._maybe_begin()
        if self._outage is Outage.NONE:
            return await super().put(key, data, condition)
        self._puts_left -= 1
        match self._outage:
            case Outage.BUSY:
                raise Throttled("the store asks for a pause")
            case Outage.MUTE:
                await super().put(key, data, condition)
            case Outage.LATE:
                self._late.append(asyncio.get_running_loop().create_task(self._put_late(key, data, condition)))
            case Outage.DEAF:
                pass
        return Unknown("an outage")

    async def get(self, key: str) -> Object | None:
        if self._outage is not Outage.NONE:
            raise Unavailable("the store did not answer: an outage")
        return await super().get(key)

    def _maybe_begin(self) -> None:
        if self._puts_left:
            return
        self._outage = Outage(self._env.world.choices.weighted(_BEGIN))
        if self._outage is not Outage.NONE:
            self._puts_left = READBACK_ATTEMPTS_MAX * (1 + self._env.world.choices.below(2))

    async def _put_late(self, key: str, data: bytes, condition: Condition) -> Outcome:
        await self._env.clock.sleep(_LATE_S)
        return await super().put(key, data, condition)
