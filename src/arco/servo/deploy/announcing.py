"""What a deployment says to the ledger: the assets that it added, changed, renamed and took away, and the columns they declare.

The head of a project decides which deployment counts, and lists the swings that nobody has told the ledger of yet. Whoever looks
next tells them, in their order, and strikes them off. The failure this prevents: a process swings the head and dies before it
has said so, and the assets are in no catalog until somebody changes them. Told twice, an event is one: its id follows from the
project and the number of the swing. Only differences are told, so every swing is: a late teller of swing 1 must not undo what
swing 2 took back. What must never enter: anything that decides what is deployed.
"""

from collections.abc import Iterator, Sequence

from arco.kernel.ids import EventId
from arco.ledger import catalog_events as said
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.payloads import SERVO, Payload, derived_event_id
from arco.servo.deploy.head import Swing
from arco.servo.deploy.manifest import DeployedAsset, Deployment, without_past
from arco.servo.deploy.schemas import RegisteredColumn


def announcements(swing: Swing, before: Deployment | None, after: Deployment) -> list[Draft]:
    """The events of one swing of a project's head."""
    at_ms = after.created_ms if swing.at_ms is None else swing.at_ms
    return [
        Draft(
            type=kind,
            source=SERVO,
            subject=subject,
            id=EventId(derived_event_id(at_ms, after.project, str(swing.number), kind, subject)),
            data=payload.data(),
            time_ms=at_ms,
        )
        for kind, subject, payload in _events(swing, at_ms, before, after)
    ]


def _events(
    swing: Swing, at_ms: int, before: Deployment | None, after: Deployment
) -> Iterator[tuple[EventType, str, Payload]]:
    earlier = {} if before is None else {one.asset_id: one for one in before.assets.values()}
    who = after.created_by if swing.by is None else swing.by
    created = said.DeploymentCreated(
        deployment=after.id,
        project=after.project,
        code_version=after.code_version,
        previous=swing.before,
        assets=len(after.assets),
        created_by=who,
        created_ms=at_ms,
        breaking=after.breaking,
        generation=swing.number,
    )
    yield said.DEPLOYMENT_CREATED, after.project, created
    for key, one in after.assets.items():
        yield from _asset_events(key, one, earlier.get(one.asset_id), after, swing.number, who)
    for gone in _gone(before, after):
        removed = said.AssetRemoved(asset_id=gone.asset_id, asset=gone.key, deployment=after.id, generation=swing.number)
        yield said.ASSET_REMOVED, gone.key, removed


def _asset_events(
    key: str, one: DeployedAsset, was: DeployedAsset | None, after: Deployment, number: int, who: str
) -> Iterator[tuple[EventType, str, Payload]]:
    if was is not None and without_past(was) == without_past(one):
        return
    deployed = said.AssetDeployed(
        asset_id=one.asset_id,
        asset=key,
        kind=one.kind,
        deployment=after.id,
        project=after.project,
        code_version=after.code_version,
        fingerprint=one.fingerprint,
        definition=one.definition,
        former_keys=one.former_keys,
        generation=number,
        who=who,
    )
    yield said.ASSET_DEPLOYED, key, deployed
    if was is not None and was.key != key:
        renamed = said.AssetRenamed(asset_id=one.asset_id, former=was.key, asset=key, deployment=after.id)
        yield said.ASSET_RENAMED, key, renamed
    if one.schema is None or (was is not None and without_past(was).schema == without_past(one).schema):
        return
    verdict = after.verdicts.get(key)
    schema = said.SchemaRegistered(
        asset_id=one.asset_id,
        table_uuid=None,
        schema_id=None,
        columns=_columns(one.schema.columns),
        compatibility=None if verdict is None else verdict.compatibility,
        changes=() if verdict is None else verdict.changes,
        deployment=after.id,
        generation=number,
    )
    yield said.SCHEMA_REGISTERED, key, schema


def _columns(columns: Sequence[RegisteredColumn]) -> tuple[said.RegisteredColumn, ...]:
    return tuple(
        said.RegisteredColumn(
            name=".".join(one.path),
            type=one.type,
            nullable=not one.required,
            column_id=one.column_id,
            field_id=one.field_id,
            description=one.doc,
        )
        for one in columns
    )


def _gone(before: Deployment | None, after: Deployment) -> list[DeployedAsset]:
    """What is no longer there. A first telling says all that ever went."""
    there = {one.asset_id for one in after.assets.values()}
    had = after.retired if before is None else before.assets
    return [one for one in had.values() if one.asset_id not in there]
