"""Whose word decides: of what Servo tells of itself Servo's, whatever others claim of times, attempts and sequence numbers.

The failure this prevents, in order:
  1. Servo ends a run, and publishes a partition with the sequence number of its commit
  2. another system posts an end of the same run that is later, or a publish with a number that no table has reached
  3. the greater order wins: the run has failed, and the partition is another's for good
So what others say stands below everything that Servo says of the same thing, before anything is compared. Servo's own orders
are as they always were, so that what was folded before goes on; so are those of others about runs that cannot be Servo's.
Among themselves the words of others are compared as ever.
"""

from arco.fold.contributions import told, told_at
from arco.kernel.ids import RunId
from arco.ledger.envelope import Event
from arco.ledger.payloads import SERVO

# Orders begin with a digit or a letter: one of these is above all that the first wins, and below all that the last wins.
_AFTER_EVERYTHING, _BEFORE_EVERYTHING = "~", "-"


def first_told(event: Event, *before: int | str) -> str:
    """As `told`: of groups that the first wins, Servo's word comes first."""
    order = told(event, *before)
    return order if event.source == SERVO else f"{_AFTER_EVERYTHING}:{order}"


def last_told(event: Event, at_ms: int, *before: int | str) -> str:
    """As `told_at`: of groups that the last wins, Servo's word comes last."""
    order = told_at(event, at_ms, *before)
    return order if event.source == SERVO else f"{_BEFORE_EVERYTHING}:{order}"


def first_told_of_run(event: Event, run_id: str, *before: int | str) -> str:
    return first_told(event, *before) if _may_be_servos(run_id) else told(event, *before)


def last_told_of_run(event: Event, run_id: str, at_ms: int, *before: int | str) -> str:
    return last_told(event, at_ms, *before) if _may_be_servos(run_id) else told_at(event, at_ms, *before)


def _may_be_servos(run_id: str) -> bool:
    """Servo's runs have ids of a form; most other systems call theirs otherwise."""
    return RunId.pattern.fullmatch(run_id) is not None
