"""Seals: proof that whoever asked for a run, planned it and let it begin has the key.

Whoever can write to the bucket can write a plan, the first entry of a log and a note that the run is open. If a scheduler signed
the tasks of whatever it finds, its key would vouch for them. So where there is a key, whoever starts a run seals its plan and its
beginning, and a server that has it seals the requests that it writes down. Each seal says of which run in which workspace it is,
so none can be moved to another. A beginning is sealed only on a plan that is sealed: else a plan that somebody laid in the place
of a run that is about to begin would be sealed with it.

Without a key (`keys` is None) nothing is sealed and nothing is refused. What must never enter: any other reason to refuse a run.
"""

import msgspec

from arco.kernel.errors import AccessDenied
from arco.kernel.fingerprint import fingerprint
from arco.kernel.scope import Scope
from arco.ledger.asked_runs import AskedRun
from arco.ledger.run_entries import RunCreated
from arco.servo.plan.document import Plan
from arco.servo.schedule.envelopes import EnvelopeKeys


def sealed_plan(keys: EnvelopeKeys | None, scope: Scope, run: str, plan: Plan) -> Plan:
    return plan if keys is None else msgspec.structs.replace(plan, seal=keys.seal(_plan(scope, run, plan)))


def need_sealed_plan(keys: EnvelopeKeys | None, scope: Scope, run: str, plan: Plan) -> None:
    """Raise if a run is about to begin on a plan that nobody with the key made."""
    if keys is not None and (why := keys.doubt(plan.seal, _plan(scope, run, plan))) is not None:
        raise AccessDenied(
            f"the plan of run {run} is not to be trusted: {why}", hint="ask for the run anew, under another key"
        )


def sealed_beginning(keys: EnvelopeKeys | None, scope: Scope, run: str, plan: Plan, created: RunCreated) -> RunCreated:
    return created if keys is None else msgspec.structs.replace(created, seal=keys.seal(_run(scope, run, plan, created)))


def run_refusal(keys: EnvelopeKeys | None, scope: Scope, run: str, plan: Plan, created: RunCreated | None) -> str | None:
    """Why nothing of a run is signed, or run, by a process with a key; None if it may be."""
    if keys is None:
        return None
    why = "it has not begun" if created is None else keys.doubt(created.seal, _run(scope, run, plan, created))
    if why is None:
        return None
    return f"{why}: start it anew where the key is set, and end this one: arco cancel {run}, then arco resume {run}"


def sealed_request(keys: EnvelopeKeys | None, scope: Scope, asked: AskedRun) -> AskedRun:
    return asked if keys is None else msgspec.structs.replace(asked, seal=keys.seal(_request(scope, asked)))


def request_refusal(keys: EnvelopeKeys | None, scope: Scope, asked: AskedRun) -> str | None:
    """Why a process with a key starts nothing for a request; None if it may."""
    why = None if keys is None else keys.doubt(asked.seal, _request(scope, asked))
    return None if why is None else f"{why}: give the server that takes requests the key (ARCO_TASK_KEY)"


def _plan(scope: Scope, run: str, plan: Plan) -> str:
    """The fingerprint is computed: what is written beside a plan proves nothing."""
    return fingerprint("sealed plan", str(scope.tenant), str(scope.workspace), run, plan.spec.fingerprint())


def _run(scope: Scope, run: str, plan: Plan, created: RunCreated) -> str:
    """Everything that the first entry says but its events: they are for whoever reads them, and nothing follows from them."""
    return fingerprint("sealed run", _plan(scope, run, plan), _spelled(msgspec.structs.replace(created, events=())))


def _request(scope: Scope, asked: AskedRun) -> str:
    return fingerprint("sealed request", str(scope.tenant), str(scope.workspace), _spelled(asked))


def _spelled(value: AskedRun | RunCreated) -> bytes:
    """As it is read again, whatever types it was made with; without its seal."""
    plain = msgspec.json.encode(msgspec.structs.replace(value, seal=None), enc_hook=str)
    return msgspec.json.encode(msgspec.json.decode(plain, type=type(value)), order="deterministic")
