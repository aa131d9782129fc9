"""Envelopes: what a scheduler signs, and what a worker with a key asks of it before it runs anybody's task.

Whoever can write to the bucket can write a run and its log. A worker that has a key runs only what somebody with the same key
signed: this attempt of this task of this run, in its own tenant and workspace, of the plan and the code that it has itself, until
the envelope expires. An envelope of another attempt, run, plan or code is worth nothing, so none can be used twice.

What must never enter: the key in anything that is stored or said, and any other reason to run or not to run a task.
"""

import hashlib
import hmac
from dataclasses import dataclass

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import TASK_ENVELOPE_S
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret
from arco.ledger.run_entries import Seal, TaskEnvelope

_KEY_CHARS_MIN = 32


@dataclass(frozen=True, slots=True)
class EnvelopeKeys:
    """The first key signs; all are accepted, so that a new one can be brought in while the old one is still in use."""

    keys: tuple[Secret, ...]

    def __post_init__(self) -> None:
        for one in self.keys:
            if len(one.reveal()) < _KEY_CHARS_MIN:
                raise InvalidInput(
                    f"a signing key of fewer than {_KEY_CHARS_MIN} characters", hint="make it of 32 random bytes"
                )

    def of(self, key_id: str) -> Secret | None:
        return next((one for one in self.keys if _key_id(one) == key_id), None)

    def seal(self, said: str) -> Seal:
        key = self.keys[0]
        return Seal(key_id=_key_id(key), signature=_mac(key, said))

    def doubt(self, seal: Seal | None, said: str) -> str | None:
        """Why something may not be of anybody who has one of the keys; None if it is."""
        if seal is None:
            return "nobody with the signing key made it"
        key = self.of(seal.key_id)
        if key is None:
            return f"it is sealed with key {clip(seal.key_id)}, which is none of ours"
        return None if _is_same(seal.signature, _mac(key, said)) else "its seal is not that of what it says"


@dataclass(frozen=True, slots=True)
class Signer:
    """The envelopes of one run. `plan_id` and `code_version` are those that this process has read and loaded itself."""

    keys: EnvelopeKeys
    scope: Scope
    run: str
    plan_id: str
    code_version: str
    lives_s: float = TASK_ENVELOPE_S

    def sign(self, task: str, attempt: int, now_ms: int) -> TaskEnvelope:
        key = self.keys.keys[0]
        plain = TaskEnvelope(
            tenant=str(self.scope.tenant),
            workspace=str(self.scope.workspace),
            run=self.run,
            task=task,
            attempt=attempt,
            plan_id=self.plan_id,
            code_version=self.code_version,
            expires_ms=now_ms + round(self.lives_s * 1000),
            key_id=_key_id(key),
            signature="",
        )
        return msgspec.structs.replace(plain, signature=_signature(key, plain))

    def refusal(self, envelope: TaskEnvelope | None, task: str, attempt: int, now_ms: int) -> str | None:
        """Why this attempt is not to be run here; None if it may be."""
        if envelope is None:
            return "no scheduler has signed it"
        key = self.keys.of(envelope.key_id)
        if key is None:
            return f"it is signed with key {envelope.key_id}, which is none of ours"
        if not _is_same(envelope.signature, _signature(key, envelope)):
            return "its signature is not that of what it says"
        if (envelope.tenant, envelope.workspace) != (self.scope.tenant, self.scope.workspace):
            return f"it was signed for {envelope.tenant}/{envelope.workspace}"
        if (envelope.run, envelope.task, envelope.attempt) != (self.run, task, attempt):
            return f"it was signed for attempt {envelope.attempt} of task {envelope.task} of run {envelope.run}"
        if (envelope.plan_id, envelope.code_version) != (self.plan_id, self.code_version):
            return "it was signed for another plan or other code"
        if now_ms >= envelope.expires_ms:
            return "it has expired"
        return None


def _key_id(key: Secret) -> str:
    """Says which key, and nothing of it."""
    return fingerprint("envelope key", key.reveal())[:16]


def _signature(key: Secret, envelope: TaskEnvelope) -> str:
    """Over every field but itself, each with its length, so that none can pass for a part of another."""
    fields = [str(getattr(envelope, one)) for one in envelope.__struct_fields__ if one != "signature"]
    return _mac(key, fingerprint("task envelope", *fields))


def _mac(key: Secret, said: str) -> str:
    return hmac.new(key.reveal().encode(), said.encode(), hashlib.sha256).hexdigest()


def _is_same(theirs: str, ours: str) -> bool:
    """What somebody wrote may be any text; only bytes are compared without a word about where they differ."""
    return hmac.compare_digest(theirs.encode(), ours.encode())
