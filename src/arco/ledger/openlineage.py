"""Events of OpenLineage, as its clients send them, turned into ours.

Each is kept as it came (`lineage.openlineage_received.v1`), and what can be read out of it follows: that a run of another system
began or ended, and edges from each input to each output, with columns where the event has them. A dataset keeps the names that
other systems have for it; which table of the catalog it is, readers find out (`read/datasets.py`). Ids follow from what was
sent: sent twice, it is the same events. What must never enter: I/O, and asking which tables there are.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, StreamId, clip
from arco.kernel.limits import LEDGER_EVENT_BYTES_MAX, OPENLINEAGE_EDGES_MAX
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.execution_events import RUN_COMPLETED, RUN_CREATED, RunCompleted, RunCreated
from arco.ledger.lineage_events import (
    LINEAGE_RECORDED,
    OPENLINEAGE_RECEIVED,
    ColumnLineage,
    ColumnMapping,
    ColumnSource,
    DatasetName,
    Edge,
    LineageRecorded,
    OpenLineageReceived,
)
from arco.ledger.payloads import Payload, derived_event_id
from arco.ledger.posted import time_ms_of

SOURCE = "openlineage"
KIND = "openlineage"
_SUBJECT_CHARS_MAX = 1024
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FACETS_BYTES_KEPT = 16 * 1024
_ENVELOPE_BYTES = 8 * 1024

Text = Annotated[str, msgspec.Meta(min_length=1)]
State = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
_ENDED: dict[State, str] = {"COMPLETE": "succeeded", "ABORT": "cancelled", "FAIL": "failed"}
_NOTHING_MADE = {"ABORT", "FAIL"}

Place = tuple[str, str]


class _Facets(msgspec.Struct, frozen=True):
    facets: dict[str, Any] | None = None


class _Run(_Facets, frozen=True):
    run_id: StreamId | None = msgspec.field(default=None, name="runId")


class _Named(_Facets, frozen=True):
    namespace: Text = ""
    name: Text = ""


class _Event(msgspec.Struct, frozen=True):
    """What is read of an event. Everything else stays in the body that is kept."""

    event_time: Text = msgspec.field(name="eventTime")
    event_type: State | None = msgspec.field(default=None, name="eventType")
    producer: str | None = None
    run: _Run | None = None
    job: _Named | None = None
    dataset: _Named | None = None
    inputs: tuple[_Named, ...] | None = None
    outputs: tuple[_Named, ...] | None = None


def is_openlineage(value: object) -> bool:
    """Whether a body has the shape of an event of OpenLineage: of a run, a job or a dataset."""
    return isinstance(value, dict) and "eventTime" in value and bool({"run", "job", "dataset"} & value.keys())


def openlineage_drafts(value: dict[str, Any]) -> tuple[Draft, ...]:
    """Our events of one of theirs; the first is the body as it came, and the cause of the others."""
    event = _read(value)
    return tuple(_Mapping(event, value, time_ms_of(event.event_time)).drafts())


@dataclass(frozen=True, slots=True)
class _Mapping:
    event: _Event
    body: dict[str, Any]
    at_ms: int

    def drafts(self) -> Iterator[Draft]:
        digest = fingerprint("openlineage", canonical_bytes(self.body))
        received = self._draft(_received(self.body), OPENLINEAGE_RECEIVED, digest, None)
        yield received
        for kind, payload in self._derived():
            yield self._draft(payload, kind, digest, received.id)

    def _derived(self) -> Iterator[tuple[EventType, Payload]]:
        if self.event.event_type == "START":
            yield RUN_CREATED, self._created()
        if self.event.event_type in _ENDED:
            yield RUN_COMPLETED, self._completed(_ENDED[self.event.event_type])
        edges = () if self.event.event_type in _NOTHING_MADE else tuple(self._edges())
        if edges:
            yield LINEAGE_RECORDED, LineageRecorded(run_id=self._run_id(), edges=edges, method="openlineage")

    def _created(self) -> RunCreated:
        return RunCreated(
            run_id=self._run_id() or "",
            project=self.event.job.namespace if self.event.job else "",
            deployment="",
            code_version="",
            trigger="openlineage",
            triggered_by=self.event.producer or "",
            tasks=1,
            job=self.event.job.name if self.event.job else None,
        )

    def _completed(self, state: str) -> RunCompleted:
        facets = (self.event.run.facets if self.event.run else None) or {}
        error = facets.get("errorMessage")
        message = error.get("message") if isinstance(error, dict) else None
        return RunCompleted(
            run_id=self._run_id() or "",
            state=state,
            tasks={state: 1},
            started_ms=None,
            ended_ms=self.at_ms,
            message=clip(message, 2000) if isinstance(message, str) else None,
        )

    def _edges(self) -> Iterator[Edge]:
        inputs, outputs = self.event.inputs or (), self.event.outputs or ()
        if self.event.dataset is not None:
            outputs = (self.event.dataset,)
        if len(inputs) * len(outputs) > OPENLINEAGE_EDGES_MAX:
            raise TooLarge(
                f"{len(inputs)} inputs and {len(outputs)} outputs make too many edges",
                hint=f"at most {OPENLINEAGE_EDGES_MAX} in one event",
            )
        for output in outputs:
            columns = _columns(output)
            # What only the columns name was read too: a dataset's own event has no inputs.
            named = {(one.namespace, one.name): one for one in inputs}
            for place in sorted({*named, *columns}):
                yield _edge(named.get(place), place, output, columns.get(place))

    def _run_id(self) -> str | None:
        return None if self.event.run is None else self.event.run.run_id

    def _draft(self, payload: Payload, kind: EventType, digest: str, cause: EventId | None) -> Draft:
        run, about = self._run_id(), self.event.job or self.event.dataset
        return Draft(
            type=kind,
            source=SOURCE,
            subject=None
            if about is None
            else clip(_CONTROLS.sub(" ", f"{about.namespace} {about.name}"), _SUBJECT_CHARS_MAX - 1),
            id=EventId(derived_event_id(self.at_ms, "openlineage", run or "", self.event.event_time, digest, kind)),
            data=payload.data(),
            streamid=run,
            correlationid=_parent(self.event) or run,
            causationid=cause,
            time_ms=self.at_ms,
        )


def _read(value: dict[str, Any]) -> _Event:
    try:
        event = msgspec.convert(value, _Event, dec_hook=_identifier)
    except msgspec.ValidationError as error:
        raise InvalidInput(clip(f"OpenLineage: {error}".replace("`", ""), 300)) from None
    if event.run is not None and event.run.run_id is None:
        raise InvalidInput("OpenLineage: run.runId is missing")
    if event.run is not None and event.job is None:
        raise InvalidInput("OpenLineage: job is missing", hint="an event of a run names its job")
    if event.event_type is not None and event.run is None:
        raise InvalidInput("OpenLineage: run is missing", hint="an event with an eventType is about a run")
    named = [one for one in (event.job, event.dataset, *(event.inputs or ()), *(event.outputs or ())) if one is not None]
    if any(not one.namespace or not one.name for one in named):
        raise InvalidInput("OpenLineage: a job or dataset has no namespace or no name")
    return event


def _identifier(wanted: type, value: object) -> Any:
    if wanted is StreamId and isinstance(value, str):
        return StreamId(value)
    raise TypeError(f"Expected `str`, got `{type(value).__name__}`")


def _received(body: dict[str, Any]) -> OpenLineageReceived:
    """The body; large facets of its run and job (a plan of Spark's, the source code) are left out of one that is too large."""
    if len(msgspec.json.encode(body)) <= LEDGER_EVENT_BYTES_MAX - _ENVELOPE_BYTES:
        return OpenLineageReceived(event=body)
    kept, omitted = dict(body), []
    for part in ("run", "job"):
        its = body.get(part) or {}
        facets = its.get("facets") or {}
        large = sorted(name for name, one in facets.items() if len(msgspec.json.encode(one)) > _FACETS_BYTES_KEPT)
        omitted += [f"{part}.facets.{name}" for name in large]
        kept[part] = {**its, "facets": {name: one for name, one in facets.items() if name not in large}}
    return OpenLineageReceived(event=kept, omitted=tuple(omitted))


def _edge(read: _Named | None, place: Place, made: _Named, mappings: list[ColumnMapping] | None) -> Edge:
    return Edge(
        upstream=place[1],
        upstream_namespace=place[0],
        upstream_symlinks=() if read is None else _symlinks(read),
        kind=KIND,
        downstream=made.name,
        downstream_namespace=made.namespace,
        downstream_symlinks=_symlinks(made),
        columns=ColumnLineage(mappings=tuple(mappings)) if mappings else None,
    )


def _columns(made: _Named) -> dict[Place, list[ColumnMapping]]:
    """The column lineage of an output, by the input that each source lies in. What is not as expected is passed over."""
    facet = (made.facets or {}).get("columnLineage")
    fields = facet.get("fields") if isinstance(facet, dict) else None
    found: dict[Place, list[ColumnMapping]] = defaultdict(list)
    for column, said in (fields if isinstance(fields, dict) else {}).items():
        by_input: dict[Place, list[dict[str, Any]]] = defaultdict(list)
        for source in _documents(said.get("inputFields") if isinstance(said, dict) else None):
            if all(isinstance(source.get(word), str) for word in ("namespace", "name", "field")):
                by_input[source["namespace"], source["name"]].append(source)
        for place, sources in by_input.items():
            names = tuple(ColumnSource(column=one["field"]) for one in sources)
            found[place].append(ColumnMapping(column=column, sources=names, transform=_transform(said, sources)))
    return found


def _transform(said: dict[str, Any], sources: list[dict[str, Any]]) -> str | None:
    for source in sources:
        for one in _documents(source.get("transformations")):
            if isinstance(one.get("subtype") or one.get("type"), str):
                return str(one.get("subtype") or one.get("type")).lower()
    kind = said.get("transformationType")
    return kind.lower() if isinstance(kind, str) else None


def _symlinks(one: _Named) -> tuple[DatasetName, ...]:
    """Other names of a dataset, each with the system that calls it so: a name alone may be another system's table."""
    facet = (one.facets or {}).get("symlinks")
    return tuple(
        DatasetName(namespace=link["namespace"], name=link["name"])
        for link in _documents(facet.get("identifiers") if isinstance(facet, dict) else None)
        if isinstance(link.get("namespace"), str) and isinstance(link.get("name"), str)
    )


def _documents(value: object) -> list[dict[str, Any]]:
    """What is a document in a list; nothing of what is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _parent(event: _Event) -> str | None:
    """The run that this one is a part of, if it says so in a form that can be kept."""
    facet = ((event.run.facets if event.run else None) or {}).get("parent")
    run = facet.get("run") if isinstance(facet, dict) else None
    parent = run.get("runId") if isinstance(run, dict) else None
    return parent if isinstance(parent, str) and StreamId.pattern.fullmatch(parent) else None
