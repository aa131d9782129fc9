"""What is said of an output before it is published: the summary of its snapshot, and its events.

Both are made when the output is written, checked and decided, under ids that are known by then; so they are the same in the
run's log, in the table and in the ledger, whoever delivers them. One event speaks of all partitions of a task, as ranges.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.kernel.fingerprint import fingerprint
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    OUTPUT_HELD,
    CheckFacts,
    FileFacts,
    MaterializationCompleted,
    OutputHeld,
)
from arco.ledger.lineage_events import LINEAGE_RECORDED, LineageRecorded, edges_of
from arco.ledger.materializations import INPUT_SNAPSHOTS
from arco.ledger.payloads import Payload, derived_event_id
from arco.ledger.quality_events import CHECK_EXECUTED, CheckExecuted
from arco.quality.gates import Decision
from arco.quality.results import CheckResult
from arco.servo.execute.data_files import Written
from arco.servo.execute.file_facts import file_facts
from arco.servo.execute.table_state import pyiceberg_schema, pyiceberg_spec
from arco.servo.execute.values import python_value
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.sdk.definitions import AssetDefinition

_COUNTS_MAX = 10_000
"""How many partitions an event counts one by one. Beyond that the table's own metadata has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Everything that is known of an output when its gate has decided."""

    run_id: str
    attempt: int
    materialization_id: str
    task: PlannedTask
    plan: Plan
    asset: AssetDefinition
    asset_id: str
    table: TableMetadata
    written: Written
    rows: int
    inputs: dict[str, list[dict[str, Any]]]
    input_snapshots: dict[str, int | None]
    input_workspaces: dict[str, str]
    full_reads: dict[str, str]
    results: tuple[CheckResult, ...]
    decision: Decision
    snapshot_id: int | None
    branch: str | None
    started_ms: int
    now_ms: int
    edges: list[dict[str, Any]]

    @property
    def grain(self) -> dict[str, str]:
        return {axis.name: axis.kind for axis in self.asset.partitions.axes}

    @property
    def failed_checks(self) -> tuple[str, ...]:
        return tuple(one.check for one in self.results if not one.passed)


def summary(made: Made) -> dict[str, str]:
    """For the snapshot, beside what every publish says."""
    facts = {
        "arco.asset": str(made.asset.key),
        "arco.asset-id": made.asset_id,
        "arco.plan-fingerprint": made.plan.fingerprint,
        "arco.code-version": made.plan.spec.code_version,
        "arco.code": made.asset.fingerprint,
        INPUT_SNAPSHOTS: _json(made.input_snapshots),
        "arco.checks": _json({"run": len(made.results), "failed": list(made.failed_checks)}),
        "arco.action": made.decision.action.value,
    }
    if made.input_workspaces:
        facts["arco.input-workspaces"] = _json(made.input_workspaces)
    if made.full_reads:
        facts["arco.full-reads"] = _json(made.full_reads)
    return facts


def events(made: Made) -> tuple[Draft, ...]:
    """What the ledger is owed when the commit has landed."""
    outcome = _completed(made) if made.decision.effect.main_moves else _held(made)
    lineage = (_lineage(made),) if made.edges and made.decision.effect.main_moves else ()
    return (outcome, *checks_of(made), *lineage)


def checks_of(made: Made) -> tuple[Draft, ...]:
    """What the checks found: said also where nothing comes of the output."""
    return tuple(_checked(made, one) for one in made.results)


def _completed(made: Made) -> Draft:
    return _draft(made, _completion(made), MATERIALIZATION_COMPLETED, "")


def _completion(made: Made) -> MaterializationCompleted:
    return MaterializationCompleted(
        materialization_id=made.materialization_id,
        run_id=made.run_id,
        task_id=made.task.id,
        attempt=made.attempt,
        asset=str(made.asset.key),
        asset_id=made.asset_id,
        table_uuid=made.table.table_uuid,
        partitions=made.task.partitions,
        code=made.asset.fingerprint,
        code_version=made.plan.spec.code_version,
        plan_fingerprint=made.plan.fingerprint,
        inputs=made.inputs,
        input_snapshots=made.input_snapshots,
        input_workspaces=made.input_workspaces,
        snapshot_id=made.snapshot_id,
        rows=made.rows,
        bytes=made.written.size_bytes,
        files=len(made.written.files),
        schema_id=made.table.current_schema_id,
        started_ms=made.started_ms,
        published_ms=made.now_ms,
        counts=_counts(made),
        checks_failed=made.failed_checks,
        mode=made.asset.write.mode.value,
        grain=made.grain,
        sequence_number=made.table.last_sequence_number + 1,
        file_stats=_files(made),
        checks=tuple(
            CheckFacts(
                check=one.check,
                passed=one.passed,
                severity=one.severity.value,
                action=_asked_by(made, one),
                failed_rows=one.failed_rows,
            )
            for one in made.results
        ),
    )


def _held(made: Made) -> Draft:
    payload = OutputHeld(
        materialization_id=made.materialization_id,
        run_id=made.run_id,
        task_id=made.task.id,
        asset=str(made.asset.key),
        asset_id=made.asset_id,
        partitions=made.task.partitions,
        action=made.decision.action.value,
        reasons=tuple(str(reason) for reason in made.decision.reasons),
        branch=made.branch,
        snapshot_id=made.snapshot_id,
        completed=_completion(made).data(),
    )
    return _draft(made, payload, OUTPUT_HELD, "")


def _checked(made: Made, result: CheckResult) -> Draft:
    payload = CheckExecuted(
        check_id=fingerprint("check of an asset", made.asset_id, result.check)[:32],
        run_id=made.run_id,
        task_id=made.task.id,
        materialization_id=made.materialization_id,
        asset=str(made.asset.key),
        asset_id=made.asset_id,
        partitions=made.task.partitions,
        result=result.document(),
        action=_asked_by(made, result),
        grain=made.grain,
    )
    return _draft(made, payload, CHECK_EXECUTED, result.check)


def _asked_by(made: Made, result: CheckResult) -> str:
    """What a check asked the gate for."""
    return next((one.action.value for one in made.decision.reasons if one.check == result.check), "continue")


def _lineage(made: Made) -> Draft:
    payload = LineageRecorded(
        run_id=made.run_id, task_id=made.task.id, materialization_id=made.materialization_id, edges=edges_of(made.edges)
    )
    return _draft(made, payload, LINEAGE_RECORDED, "")


def _draft(made: Made, payload: Payload, kind: EventType, about: str) -> Draft:
    event_id = derived_event_id(made.now_ms, made.materialization_id, str(made.attempt), kind, about)
    return payload.draft(kind, event_id, subject=str(made.asset.key), run_id=made.run_id)


def _counts(made: Made) -> list[dict[str, Any]]:
    """Rows, files and bytes of each partition tuple, by the names of the table's partition fields."""
    spec, kinds = _spec(made)
    found = made.written.partitions
    if not spec["fields"] or len(found) > _COUNTS_MAX:
        return []
    return [
        {"partition": _named(spec, kinds, values), "rows": rows, "files": files, "bytes": size}
        for values, (files, rows, size) in sorted(found.items(), key=lambda one: str(one[0]))
    ]


def _files(made: Made) -> tuple[FileFacts, ...]:
    spec, kinds = _spec(made)
    return file_facts(made.written, pyiceberg_schema(made.table.current_schema), partial(_named, spec, kinds))


def _spec(made: Made) -> tuple[dict[str, Any], Sequence[Any]]:
    """The table's partition fields, and the types of their values."""
    spec = next(one for one in made.table.document["partition-specs"] if one["spec-id"] == made.table.default_spec_id)
    return spec, pyiceberg_spec(spec).partition_type(pyiceberg_schema(made.table.current_schema)).fields


def _named(spec: dict[str, Any], kinds: Sequence[Any], values: Iterable[Any]) -> dict[str, str | None]:
    return {
        field["name"]: None if value is None else str(python_value(str(kind.field_type), value))
        for field, kind, value in zip(spec["fields"], kinds, values, strict=True)
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
