"""The nine things that can happen to one storage operation, and how often."""

from dataclasses import dataclass
from enum import IntEnum
from math import inf

from arco_sim.choices import Weights


class Fault(IntEnum):
    """What happens to an operation. The order is part of recorded choices; 0 is the harmless one."""

    OK = 0
    ERROR_BEFORE = 1  # an error, and nothing was done
    CONFLICT = 2  # the store's third answer: contended, nothing was done, the client cannot tell
    THROTTLED = 3  # a definite "not now"
    LOST_REPLY = 4  # done, and the reply never came
    ERROR_AFTER = 5  # done, and the reply says 500
    CRASH_BEFORE = 6  # the process dies with the request unsent
    CRASH_AFTER = 7  # the process dies with the reply on its way
    STALL = 8  # nothing for a long time; then done, whether or not the client still waits


FAULTS = tuple(Fault)
FAULT_NAMES = {fault: fault.name.lower().replace("_", " ") for fault in Fault}


@dataclass(frozen=True, slots=True)
class FaultProfile:
    """How often each fault happens, how long stalls are, and how far clocks may jump.

    A stall that lingers does not end by itself in a quiet moment, but most likely while others are at work: where protocols
    are thinnest, between two of their steps. Whoever is not done after `limit_s` never will be. No clock is wrong by more than
    `wrong_s_max`.
    """

    weights: Weights
    stall_s: float
    jump_s: float
    lingers: bool = False
    limit_s: float = 100_000.0
    longer_stalls_s: tuple[float, ...] = ()
    wrong_s_max: float = inf

    @property
    def stalls_s(self) -> tuple[float, ...]:
        """How long a stall may take, all alike."""
        return (self.stall_s, *self.longer_stalls_s)

    @classmethod
    def of(
        cls,
        *,
        fault_share: float,
        crash_share: float,
        stall_s: float = 300.0,
        jump_s: float = 600.0,
        lingers: bool = False,
        limit_s: float = 100_000.0,
        longer_stalls_s: tuple[float, ...] = (),
        wrong_s_max: float = inf,
    ) -> "FaultProfile":
        """`fault_share` of operations meet a fault that is no crash, `crash_share` a crash."""
        one, crash = fault_share / 6, crash_share / 2
        weights = Weights(1 - fault_share - crash_share, one, one, one, one, one, crash, crash, one)
        return cls(weights, stall_s, jump_s, lingers, limit_s, longer_stalls_s, wrong_s_max)


ROUGH = FaultProfile.of(fault_share=0.12, crash_share=0.01)
