"""Deploying a project, looking at what is deployed, and going back.

An asset keeps its identity when its key stays, or when its definition says which key it had before (`renamed_from`); two
assets never share one. What is no longer defined is retired, not forgotten: defined again, it is the same asset. Declared columns
keep their identities in the same way (`schemas.py`). A change that would break whoever reads what is already published is refused
with the reason and the way out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.asset_key import AssetKey
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown
from arco.kernel.ids import DeploymentId, UlidSource
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.quality.schemas import Schema
from arco.servo.deploy.announcing import announcements
from arco.servo.deploy.columns import TableColumns
from arco.servo.deploy.head import DeploymentHead, HeadCodec, swung
from arco.servo.deploy.manifest import DeployedAsset, Deployment, decode_deployment, described
from arco.servo.deploy.schemas import RegisteredSchema, SchemaVerdict, judged, registered, remembered, tied
from arco.servo.plan.planner import Deployed
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import Project
from arco.storage.cas import CasObject, Held
from arco.storage.keys import DeploymentHeadKey, DeploymentKey, Domain, Word
from arco.storage.port import Absent, Landed, ObjectStore
from arco.storage.readback import put_settled


@dataclass(frozen=True, slots=True)
class Difference:
    """What a deployment changes, for people."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    retired: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.renamed or self.retired)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A deployment that nobody has published yet: what counts now, what would, and what that changes and breaks."""

    before: Deployment | None
    after: Deployment
    difference: Difference

    @property
    def is_news(self) -> bool:
        return self.before is None or self.before.content() != self.after.content()

    def refuse_breaking(self) -> None:
        if self.after.breaking:
            raise InvalidInput(
                "this deployment breaks what is published: " + "; ".join(self.after.breaking),
                hint="take the change back or give the asset a new name; or deploy with --allow-breaking and make it again",
            )


_TOLD_AT_ONCE = 250

Tables = Mapping[str, TableColumns]
"""The tables of assets, by the assets' keys."""


class Deployments:
    """The deployments of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)

    def _head(self, project: str) -> CasObject[DeploymentHead]:
        key = str(DeploymentHeadKey(self._scope, Word(project)))
        return CasObject(self._store, key, HeadCodec(), self._clock, self._entropy)

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

    async def deploy(
        self, project: Project, *, by: str, allow_breaking: bool = False, tables: Tables | None = None
    ) -> tuple[Deployment, Difference]:
        """Publish a project. One that says the same as what is deployed changes nothing.

        `tables`: the tables that its assets have by now, for the columns to be tied to.
        """
        found, held = await self._prepared(project, by, tables or {})
        if not found.is_news and found.before is not None:
            if held is not None and held.value.untold:
                await self.tell(project.name)
            return found.before, found.difference
        if not allow_breaking:
            found.refuse_breaking()
        await self._write(found.after)
        await self._swing(self._head(project.name), held, found.after.id, by)
        await self.tell(project.name)
        return found.after, found.difference

    async def prepare(self, project: Project, *, by: str, tables: Tables | None = None) -> Prepared:
        """What `deploy` would do. Nothing is written."""
        return (await self._prepared(project, by, tables or {}))[0]

    async def _prepared(self, project: Project, by: str, tables: Tables) -> tuple[Prepared, Held[DeploymentHead] | None]:
        held = await self._head(project.name).read()
        if held is None:
            after = self._next(project, None, {}, by, tables)
            return Prepared(None, after, difference(None, after)), held
        before = await self.load(held.value.deployment)
        # After a rollback the newest one knows identities that the one which counts does not; ids only grow.
        newest = max((before.id, *held.value.history))
        latest = before if newest == before.id else await self.load(newest)
        known = _known(before, latest)
        after = self._next(project, before, known, by, tables)
        return Prepared(before, after, difference(before, after)), held

    async def rollback(self, project: str, to: str | None = None, *, by: str) -> Deployment:
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
        await self._swing(head, held, target, by)
        await self.tell(project)
        return found

    async def tell(self, project: str) -> int:
        """Tell the ledger of every swing that it was not told of. How many those were."""
        head = self._head(project)
        held = await head.read()
        if held is None or not held.value.untold:
            return 0
        drafts = []
        for swing in held.value.untold:
            before = None if swing.before is None else await self.load(swing.before)
            drafts += announcements(swing, before, await self.load(swing.deployment))
        ledger = Appender(self._store, self._scope, self._clock, self._entropy)
        try:
            for at in range(0, len(drafts), _TOLD_AT_ONCE):
                await ledger.append(Domain.CATALOG, drafts[at : at + _TOLD_AT_ONCE])
        finally:
            await ledger.close()
        told = held.value.untold[-1].number

        def struck(now: Held[DeploymentHead] | None) -> DeploymentHead:
            current = held.value if now is None else now.value
            left = tuple(swing for swing in current.untold if swing.number > told)
            return msgspec.structs.replace(current, untold=left)

        await head.update(struck)
        return len(held.value.untold)

    def _next(
        self,
        project: Project,
        before: Deployment | None,
        known: Mapping[str, DeployedAsset],
        by: str,
        tables: Tables,
    ) -> Deployment:
        earlier = _earlier(project.assets, known, set() if before is None else set(before.assets))
        assets: dict[str, DeployedAsset] = {}
        for key, asset in sorted(project.assets.items(), key=lambda item: str(item[0])):
            was = earlier.get(key)
            asset_id = self._ulids.next() if was is None else was.asset_id
            assets[str(key)] = DeployedAsset(
                asset_id=asset_id,
                key=str(key),
                kind=asset.kind.value,
                fingerprint=asset.fingerprint,
                definition=described(asset),
                former_keys=_former_keys(key, was),
                schema=self._schema(asset, asset_id, was, tables.get(str(key))),
            )
        taken = {one.asset_id for one in assets.values()}
        verdicts = _verdicts(project, assets, {} if before is None else _by_id(before), tables, self._ulids.next)
        after = Deployment(
            id=self._ulids.next(),
            project=project.name,
            code_version=project.code_version,
            created_ms=self._clock.now_ms(),
            created_by=by,
            previous=None if before is None else before.id,
            assets=assets,
            retired={name: one for name, one in known.items() if one.asset_id not in taken},
            verdicts=verdicts,
        )
        return after if before is None else msgspec.structs.replace(after, breaking=breaking(before, after))

    def _schema(
        self, asset: AssetDefinition, asset_id: str, earlier: DeployedAsset | None, table: TableColumns | None
    ) -> RegisteredSchema | None:
        kept = (
            None if earlier is None or earlier.schema is None else tied(earlier.schema, asset_id, table, self._ulids.next)
        )
        if asset.schema is None:
            return kept
        try:
            known = registered(Schema.of(asset.schema), kept, self._ulids.next)
            return tied(known, asset_id, table, self._ulids.next)
        except InvalidInput as error:
            raise InvalidInput(f"{asset.where}: {asset.key}: {error.message}", hint=error.hint) from error

    async def _write(self, deployment: Deployment) -> None:
        key = str(DeploymentKey(self._scope, DeploymentId(deployment.id)))
        outcome = await put_settled(
            self._store, key, deployment.encode(), Absent(), clock=self._clock, entropy=self._entropy
        )
        if not isinstance(outcome, Landed):
            raise OutcomeUnknown(f"{key} could not be written: {outcome.reason}")

    async def _swing(
        self, head: CasObject[DeploymentHead], held: Held[DeploymentHead] | None, deployment: str, by: str
    ) -> None:
        """Let a deployment count, unless another one does than when somebody looked."""
        at_ms = self._clock.now_ms()

        def change(now: Held[DeploymentHead] | None) -> DeploymentHead:
            if _swings(now) != _swings(held):
                raise Conflict(
                    "somebody else deployed this project meanwhile", hint="look at what is deployed, and try again"
                )
            return swung(None if now is None else now.value, deployment, at_ms, by)

        await head.update(change)


def _swings(held: Held[DeploymentHead] | None) -> int:
    return 0 if held is None else held.value.swings


def deployed(deployment: Deployment) -> Deployed:
    """What the planner needs of a deployment."""
    ids = {AssetKey.parse(key): one.asset_id for key, one in deployment.assets.items()}
    return Deployed(deployment.id, deployment.code_version, ids)


def difference(before: Deployment | None, after: Deployment) -> Difference:
    old = {} if before is None else before.assets
    by_id = {} if before is None else _by_id(before)
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


def _known(before: Deployment, latest: Deployment) -> dict[str, DeployedAsset]:
    """Every asset that ever was, by its name."""
    later = {**latest.retired, **latest.assets}
    ids = {one.asset_id: one for one in later.values()}
    mine = {
        name: msgspec.structs.replace(one, schema=remembered(one.schema, ids[one.asset_id].schema))
        if one.asset_id in ids
        else one
        for name, one in {**before.retired, **before.assets}.items()
    }
    return {**later, **mine}


def _earlier(
    now: Mapping[AssetKey, AssetDefinition], known: Mapping[str, DeployedAsset], counting: set[str]
) -> dict[AssetKey, DeployedAsset]:
    """What each asset was before: under its own key, or under one that it says it had. No two were the same."""
    found: dict[AssetKey, DeployedAsset] = {}
    taken: dict[str, AssetKey] = {}
    # The names of the deployment that counts come first: after a rollback, others may name the same asset.
    for key in sorted(now, key=lambda key: (str(key) not in counting, str(key))):
        own = known.get(str(key))
        if own is not None and own.asset_id not in taken:
            found[key], taken[own.asset_id] = own, key
    for key, asset in sorted(now.items(), key=lambda item: str(item[0])):
        for former in asset.renamed_from if key not in found else ():
            if former in now:
                raise InvalidInput(
                    f"{asset.where}: {key} says it was {former}, which still is an asset", hint="remove one of the two"
                )
            was = known.get(str(former))
            if was is None:
                continue
            if was.asset_id in taken:
                raise InvalidInput(
                    f"{asset.where}: {key} says it was {former}, and so does {taken[was.asset_id]}",
                    hint="only one asset can go on as another: remove renamed_from from the other",
                )
            found[key], taken[was.asset_id] = was, key
            break
    return found


def breaking(before: Deployment, after: Deployment) -> tuple[str, ...]:
    """What would orphan published partitions or readers: other dimensions, and schemas that readers cannot follow."""
    by_id = _by_id(before)
    problems = []
    for one in after.assets.values():
        earlier = by_id.get(one.asset_id)
        if earlier is not None and _shape(earlier.definition["partitions"]) != _shape(one.definition["partitions"]):
            problems.append(f"{one.key} is partitioned otherwise: its published partitions would no longer be found")
    for key, verdict in sorted(after.verdicts.items()):
        problems += [f"{key} is {verdict.compatibility} compatible: {refusal}" for refusal in verdict.refused]
    return tuple(problems)


def _verdicts(
    project: Project,
    assets: Mapping[str, DeployedAsset],
    before: Mapping[str, DeployedAsset],
    tables: Tables,
    new_id: Callable[[], str],
) -> dict[str, SchemaVerdict]:
    """On every declared schema that is not as the deployment before had it."""
    found = {}
    for key, asset in project.assets.items():
        now = assets[str(key)]
        earlier = before.get(now.asset_id)
        if earlier is None or earlier.schema is None or now.schema is None:
            continue
        schema = tied(earlier.schema, now.asset_id, tables.get(str(key)), new_id)
        verdict = judged(schema, now.schema, asset.compatibility, asset.write.properties)
        if verdict is not None:
            found[str(key)] = verdict
    return found


def _by_id(deployment: Deployment) -> dict[str, DeployedAsset]:
    return {one.asset_id: one for one in deployment.assets.values()}


def _shape(partitions: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """Names and kinds of dimensions; a list of values may grow, a start may move."""
    return [(one["name"], one["kind"]) for one in partitions]


def _former_keys(key: AssetKey, earlier: DeployedAsset | None) -> tuple[str, ...]:
    if earlier is None:
        return ()
    moved = () if earlier.key == str(key) else (earlier.key,)
    return tuple(dict.fromkeys((*earlier.former_keys, *moved)))
