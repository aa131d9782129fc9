"""What people decided about something that was held back: one compare-and-swap document each, written before anything is done.

It is the claim of whoever is at it, and the outbox of the event: who and why are durable before the table changes, so whoever
finishes what another began says what the first one said. A decision that was refused leaves the thing on the desk, for the next.
"""

from enum import StrEnum
from typing import Any

import msgspec

from arco.catalog.workspace import Workspace
from arco.kernel.errors import Conflict, CorruptObject, UnknownFormat
from arco.kernel.ids import MaterializationId
from arco.storage.cas import CasObject
from arco.storage.cas import Held as Stored
from arco.storage.keys import HeldDecisionKey, Word


class Verdict(StrEnum):
    RELEASE = "release"
    DISCARD = "discard"


class Stage(StrEnum):
    """How far a decision is."""

    OPEN = "open"  # it may be done by now: the table knows
    DONE = "done"  # the table says so, and so does the ledger
    REFUSED = "refused"  # nothing was done, and why


class DeskDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision."""

    verdict: Verdict
    who: str
    why: str
    at_ms: int
    stage: Stage = Stage.OPEN
    message: str = ""


class DecisionCodec:
    format = "arco.held_decision"

    def encode(self, value: DeskDecision) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> DeskDecision:
        if format_version != 1:
            raise UnknownFormat(f"a decision of format version {format_version}")
        try:
            return msgspec.convert(fields, DeskDecision)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a decision with wrong fields: {error}") from error


def decision_object(ws: Workspace, materialization_id: str, what: str) -> CasObject[DeskDecision]:
    key = str(HeldDecisionKey(ws.scope, MaterializationId(materialization_id), Word(what)))
    return CasObject(ws.tier1.store, key, DecisionCodec(), ws.clock, ws.entropy)


def claimed(now: Stored[DeskDecision] | None, wanted: DeskDecision) -> DeskDecision:
    """The decision that counts: ours, or one of the same kind that another began. Another kind is not ours to undo."""
    if now is None or now.value.stage is Stage.REFUSED:
        return wanted
    theirs = now.value
    if theirs.verdict is wanted.verdict:
        return theirs
    if theirs.stage is Stage.DONE:
        raise Conflict(f"{theirs.who} decided otherwise: {theirs.verdict.value}, {theirs.why!r}", hint="it is done")
    raise Conflict(
        f"{theirs.who} is about to {theirs.verdict.value} it: {theirs.why!r}",
        hint=f"if they were stopped half way: arco quarantine {theirs.verdict.value} finishes it",
    )
