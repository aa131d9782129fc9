"""Deploying a project, looking at what is deployed, and going back.

An asset keeps its identity when its key stays, or when its definition says which key it had before (`renamed_from`); two
assets never share one. What is no longer defined is retired, not forgotten: defined again, it is the same asset. A change that
would break whoever reads what is already published is refused with the reason and the way out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.asset_key import AssetKey
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, NotFound, OutcomeUnknown, UnknownFormat
from arco.kernel.ids import DeploymentId, UlidSource
from arco.kernel.scope import Scope
from arco.servo.deploy.manifest import FORMAT_VERSION, DeployedAsset, Deployment, decode_deployment, described
from arco.servo.plan.planner import Deployed
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import Project
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.keys import DeploymentHeadKey, DeploymentKey, Word
from arco.storage.port import Absent, Landed, ObjectStore, Unknown
from arco.storage.readback import put_settled


class _Head(msgspec.Struct, frozen=True):
    """Which deployment of a project counts, and those before it, newest first."""

    deployment: str
    history: tuple[str, ...] = ()


class _HeadCodec:
    format = "arco.deployment_head"

    def encode(self, value: _Head) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> _Head:
        if format_version != 1:
            raise UnknownFormat(f"the head of a project has format version {format_version}")
        try:
            return msgspec.convert(fields, _Head)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"the head of a project has wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class Difference:
    """What a deployment changes, for people."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    retired: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.renamed or self.retired)


_HISTORY_MAX = 1000


class Deployments:
    """The deployments of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)

    def _head(self, project: str) -> CasObject[_Head]:
        key = str(DeploymentHeadKey(self._scope, Word(project)))
        return CasObject(self._store, key, _HeadCodec(), self._clock, self._entropy)

    async def current(self, project: str) -> Deployment | None:
        held = await self._head(project).read()
        return None if held is None else await self.load(held.value.deployment)

    async def history(self, project: str) -> tuple[str, ...]:
        """The deployments of a project, the one that counts first."""
        held = await self._head(project).read()
        return () if held is None else (held.value.deployment, *held.value.history)

    async def load(self, deployment: str) -> Deployment:
        key = str(DeploymentKey(self._scope, DeploymentId(deployment)))
        found = await self._store.get(key)
        if found is None:
            raise NotFound(f"there is no deployment {deployment}", hint="arco deploy --history lists them")
        return decode_deployment(found.data, key)

    async def deploy(self, project: Project, *, by: str, allow_breaking: bool = False) -> tuple[Deployment, Difference]:
        """Publish a project. One that says the same as what is deployed changes nothing."""
        head = self._head(project.name)
        held = await head.read()
        before = None if held is None else await self.load(held.value.deployment)
        after = self._next(project, before, by)
        found = difference(before, after)
        if before is not None and before.content() == after.content():
            return before, found
        if before is not None and not allow_breaking:
            refuse_breaking(before, after)
        await self._write(after)
        await self._swing(head, held, after.id)
        return after, found

    async def rollback(self, project: str, to: str | None = None) -> Deployment:
        """Let an earlier deployment count again."""
        head = self._head(project)
        held = await head.read()
        if held is None:
            raise NotFound(f"project {project} was never deployed", hint="arco deploy publishes it")
        if to is None and not held.value.history:
            raise InvalidInput("there is no deployment before this one", hint="name one with --to")
        target = to or held.value.history[0]
        found = await self.load(target)
        if found.project != project:
            raise InvalidInput(f"deployment {target} is of project {found.project}")
        await self._swing(head, held, target)
        return found

    def _next(self, project: Project, before: Deployment | None, by: str) -> Deployment:
        known = {} if before is None else {**before.retired, **before.assets}
        assets: dict[str, DeployedAsset] = {}
        taken: set[str] = set()
        for key, asset in sorted(project.assets.items(), key=lambda item: str(item[0])):
            earlier = self._earlier(asset, known, project.assets)
            asset_id = self._ulids.next() if earlier is None else earlier.asset_id
            former = _former_keys(key, earlier)
            assets[str(key)] = DeployedAsset(
                asset_id=asset_id,
                key=str(key),
                kind=asset.kind.value,
                fingerprint=asset.fingerprint,
                definition=described(asset),
                former_keys=former,
            )
            taken.add(asset_id)
        retired = {name: one for name, one in known.items() if one.asset_id not in taken}
        return Deployment(
            format_version=FORMAT_VERSION,
            id=self._ulids.next(),
            project=project.name,
            code_version=project.code_version,
            created_ms=self._clock.now_ms(),
            created_by=by,
            previous=None if before is None else before.id,
            assets=assets,
            retired=retired,
        )

    def _earlier(
        self,
        asset: AssetDefinition,
        known: Mapping[str, DeployedAsset],
        now: Mapping[AssetKey, AssetDefinition],
    ) -> DeployedAsset | None:
        """What the asset was before: under its own key, or under one that it says it had."""
        own = known.get(str(asset.key))
        if own is not None:
            return own
        for former in asset.renamed_from:
            if former in now:
                raise InvalidInput(
                    f"{asset.where}: {asset.key} says it was {former}, which still is an asset",
                    hint="remove one of the two",
                )
            if str(former) in known:
                return known[str(former)]
        return None

    async def _write(self, deployment: Deployment) -> None:
        key = str(DeploymentKey(self._scope, DeploymentId(deployment.id)))
        outcome = await put_settled(
            self._store, key, deployment.encode(), Absent(), clock=self._clock, entropy=self._entropy
        )
        if not isinstance(outcome, Landed):
            raise OutcomeUnknown(f"{key} could not be written: {outcome.reason}")

    async def _swing(self, head: CasObject[_Head], held: Held[_Head] | None, deployment: str) -> None:
        before = () if held is None else (held.value.deployment, *held.value.history)
        after = _Head(deployment, tuple(one for one in before if one != deployment)[:_HISTORY_MAX])
        outcome = await (head.create(after) if held is None else head.swap(held, after))
        match outcome:
            case Swung() | Overtaken():
                return
            case Unknown(reason):
                raise OutcomeUnknown(f"the project's head did not say whether it was swung: {reason}")
            case _:
                raise Conflict(
                    "somebody else deployed this project meanwhile", hint="look at what is deployed, and try again"
                )


def deployed(deployment: Deployment) -> Deployed:
    """What the planner needs of a deployment."""
    ids = {AssetKey.parse(key): one.asset_id for key, one in deployment.assets.items()}
    return Deployed(deployment.id, deployment.code_version, ids)


def difference(before: Deployment | None, after: Deployment) -> Difference:
    old = {} if before is None else before.assets
    by_id = {one.asset_id: one for one in old.values()}
    added, changed, renamed = [], [], []
    for key, one in after.assets.items():
        earlier = by_id.get(one.asset_id)
        if earlier is None:
            added.append(key)
        elif earlier.key != key:
            renamed.append((earlier.key, key))
        elif (earlier.fingerprint, earlier.definition) != (one.fingerprint, one.definition):
            changed.append(key)
    ids = {one.asset_id for one in after.assets.values()}
    gone = [one.key for one in old.values() if one.asset_id not in ids]
    return Difference(tuple(added), tuple(changed), tuple(renamed), tuple(sorted(gone)))


def refuse_breaking(before: Deployment, after: Deployment) -> None:
    """What would orphan published partitions or readers: other dimensions, and retired assets that others still read."""
    by_id = {one.asset_id: one for one in before.assets.values()}
    problems = []
    for one in after.assets.values():
        earlier = by_id.get(one.asset_id)
        if earlier is not None and _shape(earlier.definition["partitions"]) != _shape(one.definition["partitions"]):
            problems.append(f"{one.key} is partitioned otherwise: its published partitions would no longer be found")
    if problems:
        raise InvalidInput(
            "this deployment breaks what is published: " + "; ".join(problems),
            hint="give the asset a new name, or deploy with --allow-breaking and make it again",
        )


def _shape(partitions: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """Names and kinds of dimensions; a list of values may grow, a start may move."""
    return [(one["name"], one["kind"]) for one in partitions]


def _former_keys(key: AssetKey, earlier: DeployedAsset | None) -> tuple[str, ...]:
    if earlier is None:
        return ()
    moved = () if earlier.key == str(key) else (earlier.key,)
    return tuple(dict.fromkeys((*earlier.former_keys, *moved)))
