"""What can be found, as words: assets by their names, tags, owners and descriptions, tables by their names, all by their columns.

A posting is never taken back. Whoever reads one looks whether its subject still has that word, so a rename costs nothing here.
What people say of a table (tags, owner, description), and the columns of one that no project made, stand under no namespace as
well: they are told by the table's identity, before and after it is moved to another. Readers look there beside the namespace
that they were asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec import UnsetType

from arco.fold.contributions import Contribution, RowMaker, told
from arco.fold.search_tables import POSTINGS, TRIGRAMS
from arco.fold.shredding_assets import definition_of, namespace_of
from arco.fold.shredding_iceberg import asset_of
from arco.fold.shredding_names import fields_said, full_name
from arco.fold.words import trigrams, words_of_name, words_of_text
from arco.iceberg.schemas import columns
from arco.ledger import catalog_events as said
from arco.ledger import iceberg_events as iceberg
from arco.ledger.envelope import Event
from arco.ledger.receipts import SourceKind

_POSTING, _TRIGRAM = RowMaker(POSTINGS), RowMaker(TRIGRAMS)

ANYWHERE = ""
"""The namespace of what is said of a table wherever it is."""

WEIGHTS = {"name": 8.0, "former_name": 4.0, "tag": 4.0, "column": 2.0, "owner": 2.0, "description": 1.0}


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that can be found."""

    namespace: str
    id: str
    kind: str
    name: str


def postings(event: Event, subject: Subject, found: Iterable[tuple[str, Iterable[str]]]) -> Iterator[Contribution]:
    """The rows of a subject: words by the field they stand in."""
    first = told(event)
    spelled: set[str] = set()
    for field, words in found:
        for word in dict.fromkeys(words):
            if not word:
                continue
            yield _POSTING(
                {"namespace": subject.namespace, "word": word, "subject_id": subject.id, "field": field},
                subject_kind=subject.kind,
                subject=subject.name,
                weight=WEIGHTS[field],
                found_order=first,
            )
            spelled.add(word)
    for word in sorted(spelled):
        for three in trigrams(word):
            yield _TRIGRAM(
                {"namespace": subject.namespace, "trigram": three, "word": word}, length=len(word), found_order=first
            )


def asset_deployed(event: Event) -> Iterator[Contribution]:
    it = said.AssetDeployed.of(event)
    definition = definition_of(it)
    subject = Subject(namespace_of(it.asset), it.asset_id, "asset", it.asset)
    yield from postings(
        event,
        subject,
        (
            ("name", words_of_name(it.asset)),
            ("former_name", _each(it.former_keys)),
            ("tag", _each(definition.tags)),
            ("owner", _each(definition.owners)),
            ("description", words_of_text(definition.description)),
        ),
    )


def schema_registered(event: Event) -> Iterator[Contribution]:
    """Columns are found by the asset that the event is about; it says its id alone."""
    it = said.SchemaRegistered.of(event)
    subject_id = it.asset_id or it.table_uuid
    if subject_id is None or event.subject is None or not namespace_of(event.subject):
        return
    subject = Subject(namespace_of(event.subject), subject_id, "asset" if it.asset_id else "table", event.subject)
    yield from postings(event, subject, [("column", _each(column.name for column in it.columns))])


def table_created(event: Event) -> Iterator[Contribution]:
    it = said.TableCreated.of(event)
    words = _words_said(it.tags, it.owner, it.description)
    yield from _named(event, it, it.kind, words)
    yield from postings(event, _wherever(it), words)


def table_renamed(event: Event) -> Iterator[Contribution]:
    """Under its new name; also where a table that was dropped has one again."""
    yield from _named(event, said.TableRenamed.of(event), "table")


def table_described(event: Event) -> Iterator[Contribution]:
    it = said.TableDescribed.of(event)
    fields = fields_said(it)
    yield from postings(event, _wherever(it), _words_said(fields.tags, fields.owner, fields.description))


def table_committed(event: Event) -> Iterator[Contribution]:
    """Columns of a table: of one that a project made under the asset's name. Of other tables a commit says no name."""
    it = iceberg.TableCommitted.of(event)
    subject = _committed(it)
    if subject is None or it.metadata is None:
        return
    names = [column.path[-1] for schema in it.metadata.schemas for column in columns(schema) if column.kind == "field"]
    yield from postings(event, subject, [("column", _each(names))])


def _committed(it: iceberg.TableCommitted) -> Subject | None:
    """What the columns of a commit are found by. Servo's tables are told with their first rows; of views nobody knows columns."""
    if it.source != SourceKind.SERVO:
        return Subject(ANYWHERE, it.table_uuid, "table", "") if it.kind == "table" else None
    made_for = asset_of(it)
    if made_for is None or not namespace_of(made_for[1]):
        return None
    asset_id, asset = made_for
    return Subject(namespace_of(asset), asset_id, "asset", asset)


def not_here(_event: Event) -> Iterator[Contribution]:
    return iter(())


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.ASSET_DEPLOYED: asset_deployed,
    said.SCHEMA_REGISTERED: schema_registered,
    said.TABLE_CREATED: table_created,
    said.TABLE_RENAMED: table_renamed,
    iceberg.TABLE_COMMITTED: table_committed,
    iceberg.METRICS_REPORTED: not_here,
    said.ASSET_REMOVED: not_here,
    said.ASSET_RENAMED: not_here,
    said.DEPLOYMENT_CREATED: not_here,
    said.CONTRACT_UPDATED: not_here,
    said.TABLE_RESTORED: table_renamed,
    said.TABLE_DROPPED: not_here,
    said.TABLE_DESCRIBED: table_described,
}


def _each(names: Iterable[str]) -> list[str]:
    return [word for name in names for word in words_of_name(name)]


def _named(
    event: Event, it: said.TableCreated | said.TableRenamed, kind: str, more: Iterable[tuple[str, Iterable[str]]] = ()
) -> Iterator[Contribution]:
    name = full_name(it.namespace, it.name)
    subject = Subject(".".join(it.namespace), it.table_uuid, kind, name)
    yield from postings(event, subject, [("name", words_of_name(name)), *more])


def _wherever(it: said.NameChange) -> Subject:
    """A table by its identity alone."""
    return Subject(ANYWHERE, it.table_uuid, "table", "")


def _words_said(
    tags: tuple[str, ...] | UnsetType | None, owner: str | UnsetType | None, description: str | UnsetType | None
) -> list[tuple[str, list[str]]]:
    return [
        ("tag", _each(tags or ())),
        ("owner", _each([owner or ""])),
        ("description", words_of_text(description or "")),
    ]
