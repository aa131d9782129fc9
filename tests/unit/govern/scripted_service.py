"""A token service that says what a test told it to, and remembers what it was asked."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from arco.govern.token_services import Ask, Told


class ScriptedService:
    def __init__(self, *answers: Told) -> None:
        self._answers = list(answers)
        self.asked: list[Ask] = []

    async def __call__(self, ask: Ask) -> Told:
        self.asked.append(ask)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    @property
    def forms(self) -> Sequence[dict[str, str]]:
        return [{name: values[0] for name, values in parse_qs(ask.body.decode()).items()} for ask in self.asked]


def assumed(key_id: str = "ASIA-SESSION", expires: str = "2026-01-01T01:00:00Z") -> Told:
    """What Amazon's service says when all is well."""
    body = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
      <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/vend/arco</Arn></AssumedRoleUser>
      <Credentials><AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>secret-canary</SecretAccessKey>
        <SessionToken>token-canary</SessionToken><Expiration>{expires}</Expiration></Credentials>
    </AssumeRoleResult></AssumeRoleResponse>"""
    return Told(200, body.encode())


def refused(status: int, code: str) -> Told:
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>canary of a message</Message></Error></ErrorResponse>"
    return Told(status, body.encode())
