"""Deploying a project, looking at what is deployed, and going back.

An asset keeps its identity when its key stays, or when its definition says which key it had before (`renamed_from`); two
assets never share one. What is no longer defined is retired, not forgotten: defined again, it is the same asset. Declared columns
keep their identities in the same way (`schemas.py`). A change that would break whoever reads what is already published is refused
with the reason and the way out. So is code that was deployed before and superseded, where a process starts by itself.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.asset_key import AssetKey
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown, Superseded
from arco.kernel.ids import DeploymentId, UlidSource
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.quality.compatibility import Compatibility
from arco.servo.deploy.announcing import announcements
from arco.servo.deploy.columns import TableColumns
from arco.servo.deploy.declaration import Declaration, DeclaredAsset, declared, says
from arco.servo.deploy.head import DeploymentHead, HeadCodec, swung
from arco.servo.deploy.manifest import DeployedAsset, DeployedSchedule, Deployment, decode_deployment
from arco.servo.deploy.schemas import RegisteredSchema, SchemaVerdict, judged, registered, remembered, tied
from arco.servo.plan.planner import Deployed
from arco.servo.sdk.project import Project
from arco.storage.cas import CasObject, Held
from arco.storage.keys import DeploymentHeadKey, DeploymentKey, Domain, SegmentKey, Word
from arco.storage.port import Absent, Landed, ObjectStore
from arco.storage.readback import put_settled


@dataclass(frozen=True, slots=True)
class Difference:
    """What a deployment changes, for people."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    retired: tuple[str, ...]
    schedules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.renamed or self.retired or self.schedules)


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
_READ_AT_ONCE = 16
_ANY_BASE = "any"

Tables = Mapping[str, TableColumns]
"""The tables of assets, by the assets' keys."""


class Deployments:
    """The deployments of one workspace. `stored` hears of every segment in which the ledger is told of one."""

    def __init__(
        self,
        store: ObjectStore,
        scope: Scope,
        clock: Clock,
        entropy: Entropy,
        stored: Callable[[SegmentKey], None] = lambda _key: None,
    ) -> None:
        self._hears = stored
        self.store = store
        self.scope = scope
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)

    def _head(self, project: str) -> CasObject[DeploymentHead]:
        key = str(DeploymentHeadKey(self.scope, Word(project)))
        return CasObject(self.store, key, HeadCodec(), self._clock, self._entropy)

    async def current(self, project: str) -> Deployment | None:
        held = await self._head(project).read()
        return None if held is None else await self.load(held.value.deployment)

    async def history(self, project: str) -> tuple[str, ...]:
        """The deployments of a project, the one that counts first."""
        held = await self._head(project).read()
        return () if held is None else (held.value.deployment, *held.value.history)

    async def load(self, deployment: str) -> Deployment:
        key = str(DeploymentKey(self.scope, DeploymentId(deployment)))
        found = await self.store.get(key)
        if found is None:
            raise NotFound(f"there is no deployment {deployment}", hint="arco deploy --history lists them")
        return decode_deployment(found.data, key)

    async def counting(self, project: Project) -> Deployment | None:
        """The deployment that counts, if there is one. Superseded if it is not one of this code."""
        found = await self.current(project.name)
        if found is None or (found.code_version == project.code_version and says(found) == says(declared(project))):
            return found
        raise Superseded(f"deployment {found.id} of {found.project} counts, and the code here is not that one")

    async def deploy(
        self,
        project: Project,
        *,
        by: str,
        allow_breaking: bool = False,
        tables: Tables | None = None,
        goes_back: bool = True,
    ) -> tuple[Deployment, Difference]:
        """Publish a project. One that says the same as what is deployed changes nothing.

        `tables`: the tables that its assets have by now, for the columns to be tied to. `goes_back`: code that was
        deployed before, and does not count now, may count again; otherwise it is Superseded.
        """
        found = await self.publish(
            declared(project), by=by, allow_breaking=allow_breaking, tables=tables, goes_back=goes_back
        )
        return (found.after if found.is_news or found.before is None else found.before), found.difference

    async def publish(
        self,
        project: Declaration,
        *,
        by: str,
        allow_breaking: bool = False,
        tables: Tables | None = None,
        base: str | None = _ANY_BASE,
        goes_back: bool = True,
    ) -> Prepared:
        """Publish what a project declares: what was found, which counts now if it is news.

        Conflict if another deployment counts than `base`, where that is given (None: there is none yet), and if somebody else
        deploys something else meanwhile: who deploys the same has done it for both.
        """
        found, held = await self._prepared(project, by, tables or {}, goes_back=goes_back)
        counts = None if found.before is None else found.before.id
        if not found.is_news and found.before is not None:
            if held is not None and held.value.untold:
                await self.tell(project.project)
            return found
        if base not in {_ANY_BASE, counts}:
            raise Conflict(
                f"deployment {counts} of {project.project} counts, and this was made for {base}",
                hint="declare it again, on what is deployed now",
            )
        if not allow_breaking:
            found.refuse_breaking()
        await self._write(found.after)
        try:
            await self._swing(self._head(project.project), held, found.after.id, by)
        except Conflict:
            found, _ = await self._prepared(project, by, tables or {})
            if found.is_news:
                raise
        await self.tell(project.project)
        return found

    async def prepare(self, project: Project, *, by: str, tables: Tables | None = None) -> Prepared:
        """What `deploy` would do. Nothing is written."""
        return (await self._prepared(declared(project), by, tables or {}))[0]

    async def _prepared(
        self, project: Declaration, by: str, tables: Tables, *, goes_back: bool = True
    ) -> tuple[Prepared, Held[DeploymentHead] | None]:
        held = await self._head(project.project).read()
        if held is None:
            after = self._next(project, None, {}, by, tables)
            return Prepared(None, after, difference(None, after)), held
        before = await self.load(held.value.deployment)
        if not goes_back:
            await self._refuse_superseded(project, before, held.value.history)
        # After a rollback the newest one knows identities that the one which counts does not; ids only grow.
        newest = max((before.id, *held.value.history))
        latest = before if newest == before.id else await self.load(newest)
        known = _known(before, latest)
        after = self._next(project, before, known, by, tables)
        return Prepared(before, after, difference(before, after)), held

    async def _refuse_superseded(self, project: Declaration, before: Deployment, history: Sequence[str]) -> None:
        """Refuse what an earlier deployment says. Only what is not deployed as it is has to be looked for, newest first."""
        said = says(project)
        if said == says(before):
            return
        for at in range(0, len(history), _READ_AT_ONCE):
            some = await asyncio.gather(*map(self.load, history[at : at + _READ_AT_ONCE]))
            if (same := next((one for one in some if says(one) == said), None)) is not None:
                raise Superseded(
                    f"deployment {before.id} of {project.project} counts, and the code here was deployed as {same.id} before"
                )

    async def rollback(self, project: str, to: str | None = None, *, by: str, allow_breaking: bool = False) -> Deployment:
        """Let an earlier deployment count again. Refused like a deployment, if what is published since would not be found."""
        head = self._head(project)
        held = await head.read()
        if held is None:
            raise NotFound(f"project {project} was never deployed", hint="arco deploy publishes it")
        counting = await self.load(held.value.deployment)
        # Not the last of the history: after going back, that is the newer one which was gone back from.
        target = to or counting.previous
        if target is None:
            raise InvalidInput("there is no deployment before this one", hint="name one with --to")
        found = await self.load(target)
        if found.project != project:
            raise InvalidInput(f"deployment {target} is of project {found.project}")
        broken = () if allow_breaking else self._broken_by_going_back(counting, found)
        if broken:
            raise InvalidInput(
                "going back breaks what is published: " + "; ".join(broken),
                hint="name another deployment with --to; or go back with --allow-breaking and make it again",
            )
        await self._swing(head, held, target, by)
        await self.tell(project)
        return found

    def _broken_by_going_back(self, before: Deployment, after: Deployment) -> tuple[str, ...]:
        """What would be refused if the earlier deployment were deployed now. Its own verdicts are on what came before it."""
        verdicts = _verdicts(after.assets, _by_id(before), {}, self._ulids.next)
        return breaking(before, msgspec.structs.replace(after, verdicts=verdicts))

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
        ledger = Appender(self.store, self.scope, self._clock, self._entropy, stored=self._hears)
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
        project: Declaration,
        before: Deployment | None,
        known: Mapping[str, DeployedAsset],
        by: str,
        tables: Tables,
    ) -> Deployment:
        earlier = _earlier(project.assets, known, set() if before is None else set(before.assets))
        assets: dict[str, DeployedAsset] = {}
        for key, asset in sorted(project.assets.items()):
            was = earlier.get(key)
            asset_id = self._ulids.next() if was is None else was.asset_id
            assets[key] = DeployedAsset(
                asset_id=asset_id,
                key=key,
                kind=asset.kind,
                fingerprint=asset.fingerprint,
                definition=asset.definition,
                former_keys=_former_keys(key, was),
                schema=self._schema(key, asset, asset_id, was, tables.get(key)),
            )
        taken = {one.asset_id for one in assets.values()}
        verdicts = _verdicts(assets, {} if before is None else _by_id(before), tables, self._ulids.next)
        after = Deployment(
            id=self._ulids.next(),
            project=project.project,
            code_version=project.code_version,
            created_ms=self._clock.now_ms(),
            created_by=by,
            previous=None if before is None else before.id,
            assets=assets,
            retired={name: one for name, one in known.items() if one.asset_id not in taken},
            verdicts=verdicts,
            schedules=_schedules(project, before, self._clock.now_ms()),
        )
        return after if before is None else msgspec.structs.replace(after, breaking=breaking(before, after))

    def _schema(
        self, key: str, asset: DeclaredAsset, asset_id: str, earlier: DeployedAsset | None, table: TableColumns | None
    ) -> RegisteredSchema | None:
        kept = (
            None if earlier is None or earlier.schema is None else tied(earlier.schema, asset_id, table, self._ulids.next)
        )
        declares = asset.schema
        if declares is None:
            return kept
        try:
            return tied(registered(declares, kept, self._ulids.next), asset_id, table, self._ulids.next)
        except InvalidInput as error:
            raise InvalidInput(f"{asset.where}: {key}: {error.message}", hint=error.hint) from error

    async def _write(self, deployment: Deployment) -> None:
        key = str(DeploymentKey(self.scope, DeploymentId(deployment.id)))
        outcome = await put_settled(
            self.store, key, deployment.encode(), Absent(), clock=self._clock, entropy=self._entropy
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
    schedules = _changed_schedules({} if before is None else before.schedules, after.schedules)
    return Difference(tuple(added), tuple(changed), tuple(renamed), tuple(sorted(gone)), schedules)


def _changed_schedules(before: Mapping[str, DeployedSchedule], after: Mapping[str, DeployedSchedule]) -> tuple[str, ...]:
    """The schedules that are new, do something else, or are gone."""

    def version(known: Mapping[str, DeployedSchedule], name: str) -> str | None:
        return known[name].version if name in known else None

    return tuple(name for name in sorted({*before, *after}) if version(before, name) != version(after, name))


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
    now: Mapping[str, DeclaredAsset], known: Mapping[str, DeployedAsset], counting: set[str]
) -> dict[str, DeployedAsset]:
    """What each asset was before: under its own key, or under one that it says it had. No two were the same."""
    found: dict[str, DeployedAsset] = {}
    taken: dict[str, str] = {}
    # The names of the deployment that counts come first: after a rollback, others may name the same asset.
    for key in sorted(now, key=lambda key: (key not in counting, key)):
        own = known.get(key)
        if own is not None and own.asset_id not in taken:
            found[key], taken[own.asset_id] = own, key
    for key, asset in sorted(now.items()):
        for former in asset.renamed_from if key not in found else ():
            if former in now:
                raise InvalidInput(
                    f"{asset.where}: {key} says it was {former}, which still is an asset", hint="remove one of the two"
                )
            was = known.get(former)
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
    problems = _moved(before, after)
    for key, verdict in sorted(after.verdicts.items()):
        problems += [f"{key} is {verdict.compatibility} compatible: {refusal}" for refusal in verdict.refused]
    return tuple(problems)


def _moved(before: Deployment, after: Deployment) -> list[str]:
    """The assets whose published partitions are none of today's."""
    by_id = _by_id(before)
    found = []
    for one in after.assets.values():
        earlier = by_id.get(one.asset_id)
        if earlier is not None and _shape(earlier.definition["partitions"]) != _shape(one.definition["partitions"]):
            found.append(f"{one.key} is partitioned otherwise: partitions published before would no longer be found")
    return found


def _verdicts(
    assets: Mapping[str, DeployedAsset],
    before: Mapping[str, DeployedAsset],
    tables: Tables,
    new_id: Callable[[], str],
) -> dict[str, SchemaVerdict]:
    """On every declared schema that is not as the deployment before had it."""
    found = {}
    for key, now in assets.items():
        earlier = before.get(now.asset_id)
        if earlier is None or earlier.schema is None or now.schema is None:
            continue
        schema = tied(earlier.schema, now.asset_id, tables.get(key), new_id)
        mode, properties = Compatibility(now.definition["compatibility"]), now.definition["write"]["properties"]
        verdict = judged(schema, now.schema, mode, properties)
        if verdict is not None:
            found[key] = verdict
    return found


def _schedules(project: Declaration, before: Deployment | None, now_ms: int) -> dict[str, DeployedSchedule]:
    """The schedules of a project. One that does what it did goes on from when it first did."""
    found = {}
    for name, one in sorted(project.schedules.items()):
        earlier = None if before is None else before.schedules.get(name)
        is_same = earlier is not None and earlier.version == one.version
        found[name] = DeployedSchedule(
            name=name,
            version=one.version,
            since_ms=earlier.since_ms if is_same and earlier is not None else now_ms,
            definition=one.definition,
            description=one.description,
        )
    return found


def _by_id(deployment: Deployment) -> dict[str, DeployedAsset]:
    return {one.asset_id: one for one in deployment.assets.values()}


def _shape(partitions: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """Names and kinds of dimensions; a list of values may grow, a start may move."""
    return [(one["name"], one["kind"]) for one in partitions]


def _former_keys(key: str, earlier: DeployedAsset | None) -> tuple[str, ...]:
    if earlier is None:
        return ()
    moved = () if earlier.key == key else (earlier.key,)
    return tuple(dict.fromkeys((*earlier.former_keys, *moved)))
