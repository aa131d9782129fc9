"""Seals: with a key, only runs that somebody with the key planned and began are signed and run."""

import msgspec
import pytest

from arco.kernel.errors import AccessDenied
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.asked_runs import AskedRun, request_id
from arco.ledger.run_entries import OnFailure, RunCreated, Seal, Trigger
from arco.ledger.run_log import write_plan
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.seals import (
    need_sealed_plan,
    request_refusal,
    run_refusal,
    sealed_beginning,
    sealed_plan,
    sealed_request,
)
from arco.servo.schedule.starting import RunRequest, Started, begin_run, start_run
from unit.servo.schedule.ground import SCOPE, Place, plan_of
from unit.servo.schedule.test_driver import told

KEYS, OTHER = EnvelopeKeys((Secret("a" * 32),)), EnvelopeKeys((Secret("b" * 32),))
PLAN = plan_of({"a": ""})
CREATED = RunCreated(plan_id=PLAN.fingerprint, tasks=1, trigger=Trigger.MANUAL, who="ann", max_parallelism=2, timeout_s=60)
ASKED = AskedRun(id=str(request_id("k")), project="shop", make=("orders",), timeout_s=60, who="ann", asked_ms=7)


def refusal(created: RunCreated | None, *, keys=KEYS, scope=SCOPE, run="r", plan=PLAN) -> str | None:
    return run_refusal(keys, scope, run, plan, created)


def test_what_somebody_with_the_key_began_is_signed_and_run_as_it_is_read_again() -> None:
    made = sealed_beginning(KEYS, SCOPE, "r", PLAN, CREATED)
    assert refusal(made) is None
    assert refusal(msgspec.json.decode(msgspec.json.encode(made), type=RunCreated)) is None
    both = EnvelopeKeys((*OTHER.keys, *KEYS.keys))
    assert refusal(made, keys=both) is None


def test_what_nobody_sealed_is_refused_in_one_line_that_says_what_to_do() -> None:
    why = refusal(CREATED)
    assert why is not None
    assert "nobody with the signing key" in why
    assert "arco cancel r" in why
    assert "\n" not in why
    assert refusal(None) is not None
    assert refusal(CREATED, keys=None) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("plan_id", "plan_2"),
        ("tasks", 2),
        ("trigger", Trigger.BACKFILL),
        ("who", "eve"),
        ("max_parallelism", 1000),
        ("timeout_s", 0.001),
        ("on_failure", OnFailure.FAIL_FAST),
        ("idempotency_key", "k"),
        ("atomic", True),
        ("transaction_tables", 1),
        ("seal", Seal(key_id="0" * 16, signature="0" * 64)),
        ("seal", Seal(key_id=KEYS.seal("").key_id, signature="0" * 64)),
        ("seal", Seal(key_id=KEYS.seal("").key_id, signature="ü")),
        ("seal", None),
    ],
)
def test_a_beginning_whose_words_were_changed_is_refused(field: str, value: object) -> None:
    made = sealed_beginning(KEYS, SCOPE, "r", PLAN, CREATED)
    assert refusal(msgspec.structs.replace(made, **{field: value})) is not None


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"scope": Scope.of("other", "w")},
        {"scope": Scope.of("t", "other")},
        {"run": "s"},
        {"plan": plan_of({"b": ""})},
        {"plan": msgspec.structs.replace(plan_of({"b": ""}), fingerprint=PLAN.fingerprint)},
        {"keys": OTHER},
    ],
)
def test_a_seal_is_worth_nothing_elsewhere(elsewhere: dict) -> None:
    assert refusal(sealed_beginning(KEYS, SCOPE, "r", PLAN, CREATED), **elsewhere) is not None
    theirs = {"keys": KEYS, "scope": SCOPE, "run": "r", "plan": PLAN} | elsewhere
    moved = msgspec.structs.replace(theirs.pop("plan"), seal=sealed_plan(KEYS, SCOPE, "r", PLAN).seal)
    with pytest.raises(AccessDenied):
        need_sealed_plan(plan=moved, **theirs)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("make", ("all",)),
        ("parameters", {"limit": "1"}),
        ("mode", "force"),
        ("who", "eve"),
        ("asked_ms", 8),
        ("seal", None),
    ],
)
def test_a_request_whose_words_were_changed_is_refused(field: str, value: object) -> None:
    asked = sealed_request(KEYS, SCOPE, ASKED)
    assert request_refusal(KEYS, SCOPE, msgspec.json.decode(msgspec.json.encode(asked), type=AskedRun)) is None
    assert request_refusal(KEYS, SCOPE, msgspec.structs.replace(asked, **{field: value})) is not None
    assert request_refusal(None, SCOPE, ASKED) is None


async def _started(place: Place, **words) -> Started:
    env = place.env("starter")
    return await start_run(env.store, SCOPE, PLAN, RunRequest(**words), env.clock, env.entropy)


@told
async def test_a_run_that_is_started_with_a_key_carries_its_seal(place: Place) -> None:
    started = await _started(place, keys=KEYS)
    again = await place.opened(started.log.run)
    assert refusal(again.log.state.run.created, run=str(again.log.run), plan=again.plan) is None
    keyless = await _started(place)
    assert refusal(keyless.log.state.run.created, run=str(keyless.log.run), plan=keyless.plan) is not None


@told
async def test_no_run_begins_with_a_seal_on_a_plan_that_somebody_laid_in_its_place(place: Place) -> None:
    env, run = place.env("starter"), RunId("01JZ3V5Q0E8Y7M2K4T6B9N1D3F")
    stored = await write_plan(env.store, SCOPE, run, plan_of({"z": ""}).encode(), env.clock, env.entropy)
    with pytest.raises(AccessDenied, match="nobody with the signing key"):
        await begin_run(env.store, SCOPE, run, stored, RunRequest(keys=KEYS), env.clock, env.entropy)
    begun = await begin_run(env.store, SCOPE, run, stored, RunRequest(), env.clock, env.entropy)
    assert begun.is_new
