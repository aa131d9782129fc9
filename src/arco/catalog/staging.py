"""Staged creates: a table that is described, written to by its client, and made visible by its first commit.

Staging makes nothing visible. It writes an intent, with the identity and the place that were given out and when they expire,
so that upkeep knows whose files lie there. The commit with `assert-create` is the creation: it must name that identity, lie in
the place the intent says (or in one that the location policy allows), and take the name through tier 1 like any other
creation. Losing that race is a conflict.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.model import Kind, Levels
from arco.catalog.names import Draft, Names
from arco.catalog.once import once
from arco.catalog.operations import Create
from arco.catalog.relations import STAGE_AGAIN, Relations
from arco.catalog.workspace import Workspace
from arco.iceberg import changes, guardrails, requirements, updates
from arco.iceberg.guardrails import Allowed
from arco.iceberg.locations import same_place
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable, CreateTable, check_new_name
from arco.kernel.errors import (
    AlreadyExists,
    Conflict,
    CorruptObject,
    FixRequest,
    InvalidInput,
    NoSuchTable,
    OutcomeUnknown,
    Refresh,
    RetryLater,
    UnknownFormat,
)
from arco.kernel.ids import TableUuid, clip
from arco.kernel.limits import STAGED_INTENT_LIFETIME_S
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Source
from arco.storage.keys import Slug, StagedIntentKey
from arco.storage.port import Absent, Unknown
from arco.storage.readback import put_settled


class Intent(msgspec.Struct, frozen=True):
    """What was given out to whoever stages a table."""

    format: str
    format_version: int
    table_uuid: str
    location: str
    namespace: Levels
    name: str
    key_hash: str
    created_ms: int
    expires_ms: int


class _Staged(msgspec.Struct, frozen=True):
    """What an answer to a staged create is made again from."""

    uuid: str
    at_ms: int


_EXPIRED = "this staged table has expired"
"""Said to a commit that came after the time of its staged table, which is counted apart from what is refused otherwise."""


class Staging:
    """Staged creates of one workspace."""

    def __init__(self, workspace: Workspace, tables: Relations[TableMetadata, CreateTable], allowed: Allowed) -> None:
        self._ws = workspace
        self._tables = tables
        self._allowed = allowed

    async def stage(
        self, levels: Levels, request: CreateTable, key: RequestKey, identity: str | None = None
    ) -> TableMetadata:
        """The metadata of a table that does not exist yet. Nothing of it is visible.

        `identity`: one that was made for this table alone and a short while ago; by default it is made now.
        """

        async def begin() -> Marker:
            return self._tables.first_marker(key, identity or self._tables.new_identity())

        async def act(marker: Marker) -> Answer:
            staged = _Staged(marker.table_uuid or "", marker.minted_ms)
            metadata = self._metadata(request, staged)
            self._check_free((await self._ws.tier1.current()).names, levels, request, metadata, staged)
            await self._write_intent(levels, request, metadata, key, staged)
            # After the intent: folders that nobody has a note of would stay for ever.
            await self._ws.files.make_room(metadata.location)
            self._ws.tallies.add(Tallied.STAGED)
            return Answer(200, body=msgspec.json.encode(staged).decode())

        answer = await once(self._ws, key, begin, act)
        return self._metadata(request, msgspec.json.decode(answer.body or "", type=_Staged))

    def _check_free(
        self, names: Names, levels: Levels, request: CreateTable, metadata: TableMetadata, staged: _Staged
    ) -> None:
        """Refuse now what the creation would be refused for later: a missing namespace, a taken name."""
        entry = self._tables.new_entry(staged.uuid, levels, request.name, metadata.location, staged.at_ms)
        Draft(names).apply(Create(key_hash="", entry=entry, minted_ms=staged.at_ms), staged.at_ms)

    def _metadata(self, request: CreateTable, staged: _Staged) -> TableMetadata:
        return self._tables.described(request, staged.uuid, staged.at_ms)

    async def _write_intent(
        self, levels: Levels, request: CreateTable, metadata: TableMetadata, key: RequestKey, staged: _Staged
    ) -> None:
        intent = Intent(
            "arco.staged_intent",
            1,
            staged.uuid,
            metadata.location,
            levels,
            request.name,
            key.hash,
            staged.at_ms,
            staged.at_ms + STAGED_INTENT_LIFETIME_S * 1000,
        )
        name = str(StagedIntentKey(self._ws.scope, TableUuid(staged.uuid)))
        outcome = await put_settled(
            self._ws.tier1.store,
            name,
            msgspec.json.encode(intent),
            Absent(),
            clock=self._ws.clock,
            entropy=self._ws.entropy,
        )
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"{name} could not be written: {outcome.reason}")

    # The commit that creates

    async def create_by_commit(
        self,
        levels: Levels,
        name: str,
        request: CommitTable,
        key: RequestKey,
        source: Source,
        asset_id: str | None = None,
    ) -> tuple[TableMetadata, str]:
        """Create the table that a commit with `assert-create` describes, of an asset that may be known already."""
        begun = False

        async def begin() -> Marker:
            if self._ws.tier1.names.find(levels, name, Kind.TABLE) is not None:
                # The name is taken, if that is still so: the requirement that it is not fails like any other.
                with suppress(NoSuchTable):
                    requirements.check(request.requirements, (await self._tables.load(levels, name))[1].metadata)
            return self._tables.first_marker(key, assigned_uuid(request) or self._tables.new_identity())

        async def act(marker: Marker) -> Answer:
            async def is_done() -> bool:
                return await self._ws.tier1.landed_at(key.hash, marker.since) is not None

            nonlocal begun
            uuid = marker.table_uuid or ""
            intent = await self.intent(uuid)
            metadata = await self.described(name, request, uuid, marker.minted_ms, intent, is_done)
            begun = True
            await self._tables.stage_new(metadata, key, source, uuid)
            try:
                answer = await self._tables.take_name(levels, name, metadata, key, source, marker, asset_id)
            except AlreadyExists as taken:
                if not taken.message.startswith("Table already exists"):
                    raise
                raise Conflict("Requirement failed: table already exists") from taken
            # Here, where it is done: a retry that hears the same answer creates nothing.
            self._ws.tallies.add(Tallied.STAGED_CREATED)
            return answer

        try:
            return await self._tables.answered(await once(self._ws, key, begin, act))
        except RetryLater as silence:
            if key.durable or not begun:
                raise
            raise begun_in_vain(silence) from silence
        except (FixRequest, Refresh) as refusal:
            late = refusal.message == _EXPIRED
            self._ws.tallies.add(Tallied.STAGED_EXPIRED if late else Tallied.STAGED_REFUSED)
            raise

    async def described(
        self,
        name: str,
        request: CommitTable,
        uuid: str,
        at_ms: int,
        intent: Intent | None,
        is_done: Callable[[], Awaitable[bool]],
    ) -> TableMetadata:
        """The metadata of the table that a commit with `assert-create` makes, in the place that was given out for it."""
        check_new_name(name, "table name")
        # Whatever else is required is required of a table that is not there.
        requirements.check(request.requirements, None)
        metadata = updates.apply(None, request.updates, now_ms=at_ms)
        await self._check_expiry(intent, is_done)
        self._check_place(name, uuid, request, metadata, intent)
        return metadata

    async def _check_expiry(self, intent: Intent | None, is_done: Callable[[], Awaitable[bool]]) -> None:
        """After its time a staged table's files may be gone. Unless this very request created the table in time."""
        if intent is None or self._ws.clock.now_ms() <= intent.expires_ms:
            return
        if not await is_done():
            raise Conflict(_EXPIRED, hint="stage it again and write its files anew")

    def _check_place(
        self, name: str, uuid: str, request: CommitTable, metadata: TableMetadata, intent: Intent | None
    ) -> None:
        """The table lies where its intent says, or where Arco would have placed it, or where the policy allows."""
        if metadata.table_uuid != uuid:
            raise InvalidInput("the commit of a new table assigns it no uuid", hint="send assign-uuid")
        own = self._tables.own_location(Slug.from_name(name), uuid) if intent is None else intent.location
        if not same_place(metadata.location, own) and not self._allowed(metadata.location):
            raise InvalidInput(f"location {clip(metadata.location)} is not allowed", hint="stage the table first")
        guardrails.check_updates(request.updates, own_location=metadata.location, allowed=self._allowed)
        guardrails.check_locations(metadata, own_location=metadata.location, allowed=self._allowed)

    async def intent(self, uuid: str) -> Intent | None:
        """What was said when the table was staged; None if it was not."""
        name = str(StagedIntentKey(self._ws.scope, TableUuid(uuid)))
        found = await self._ws.tier1.store.get(name)
        return None if found is None else decode_intent(found.data, name)


def begun_in_vain(silence: RetryLater) -> Conflict:
    """What to say of a creation without a key that was begun and gave way. "Send the same again" would be a lie: that is another
    request, which may not adopt what the first one began (N5).
    """
    return Conflict(f"nothing was done, and what was begun cannot be sent again: {silence.message}", hint=STAGE_AGAIN)


def decode_intent(data: bytes, name: str) -> Intent:
    try:
        intent = msgspec.json.decode(data, type=Intent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{name} is not an intent: {error}") from error
    if intent.format_version != 1:
        raise UnknownFormat(f"{name} has format version {intent.format_version}")
    return intent


def assigned_uuid(request: CommitTable) -> str | None:
    given: list[Any] = [update.uuid for update in request.updates if isinstance(update, changes.AssignUuid)]
    return str(TableUuid(given[-1])) if given else None
