"""An application that vends, on a store in memory that clients know as a bucket, beside a token service that keeps a list."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from arco.catalog.policy import LocationPolicy
from arco.govern.assume_role import AssumeRole, Role
from arco.govern.aws_signature import AwsKeys
from arco.govern.given_keys import GivenKeys
from arco.govern.places import Validation
from arco.govern.token_services import Ask, Told
from arco.govern.vending import Access, Vending
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.secret import Secret
from arco.storage.memory import MemoryStore
from arco.storage.roots import Root
from arco.surface.http.app import App
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from stand_ins.asgi import Answer, ask
from stand_ins.hand_clock import HandClock

BASE = "s3://lake"
NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
CANARY = "canary-of-a-secret"
DURATION_S = 3600


class TokenService:
    """Gives every session keys of its own, that live for an hour of the ground's clock."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.policies: list[dict[str, Any]] = []
        self.silent = False

    async def __call__(self, asked: Ask) -> Told:
        if self.silent:
            return Told(500, b"")
        self.policies.append(json.loads(parse_qs(asked.body.decode())["Policy"][0]))
        number, ends = len(self.policies), (self._clock.now_ms() // 1000) + DURATION_S
        body = f"""<r><Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>{CANARY}{number}</SecretAccessKey>
          <SessionToken>{CANARY}</SessionToken><Expiration>{_iso(ends)}</Expiration></Credentials></r>"""
        return Told(200, body.encode())

    @property
    def folders(self) -> list[str]:
        """What each session may read, from the bucket on."""
        return [one["Statement"][0]["Resource"][0].removeprefix("arn:aws:s3:::") for one in self.policies]


class VendingGround:
    def __init__(
        self, policy: LocationPolicy | None = None, access: Access = Access.WRITE, given: str | None = None
    ) -> None:
        """`given`: a key that is passed on; without one a token service makes them."""
        self.runner = asyncio.Runner()
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        self.service = TokenService(self.clock)
        entropy = SeededEntropy(7)
        role = Role("arn:aws:iam::123456789012:role/vend", "https://sts.test", "eu-west-1", DURATION_S)
        vendor = AssumeRole(role, AwsKeys("AKID", Secret(CANARY)), self.service, self.clock)
        keys = None if given is None else GivenKeys({"s3.secret-access-key": Secret(given)})
        vending = Vending(Validation(Root("s3", "lake", ""), BASE), keys or vendor, access, self.clock)
        for_clients = ForClients({"s3.region": "eu-west-1"}, {}, vending)
        self.state = ServerState(self.store, BASE, for_clients, policy or LocationPolicy(), self.clock, entropy)
        self.app = App(self.state, UlidSource(self.clock, entropy))
        assert self.post(NAMESPACES, {"namespace": ["ns"]}).status == 200

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        return self.runner.run(ask(self.app, method, path, data, **headers))

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def create(self, name: str = "t", **more: Any) -> Answer:
        return self.post(TABLES, {"name": name, "schema": SCHEMA, **more}, **DELEGATED)

    def everything(self) -> dict[str, bytes]:
        self.runner.run(self.state.settle())
        return {key: stored.data for key, stored in self.store._objects.items()}


DELEGATED = {"X_Iceberg_Access_Delegation": "vended-credentials"}


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
