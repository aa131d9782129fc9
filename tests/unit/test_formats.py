"""The pages of docs/formats say what the code writes: every field with its type, no other, and examples that decode.

A struct has a section of its name in exactly one page. Whoever adds a field, a struct or a value of an enumeration and leaves the
page as it was finds the difference here.
"""

import hashlib
import io
import json
import re
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arco.catalog import idempotency, manifest, names, pointer, state_files, transaction_records, untold, workspaces
from arco.catalog.feed_pages import FeedCheckpoint, FeedPage
from arco.catalog.idempotency import Marker
from arco.catalog.manifest import Commit, Manifest, ManifestCodec
from arco.catalog.model import Dropped, Entry, Namespace
from arco.catalog.operations import Operation
from arco.catalog.pointer import Pointer
from arco.catalog.staging import Intent
from arco.catalog.transaction_records import Record
from arco.catalog.untold import Mark
from arco.catalog.workspaces import WorkspaceRecord
from arco.kernel import limits
from arco.kernel.entropy import SeededEntropy
from arco.kernel.fingerprint import content_hash
from arco.ledger import asked_troubles
from arco.ledger.asked_runs import AskedRun, AskedVerdict
from arco.ledger.asked_troubles import AskedTrouble
from arco.ledger.receipts import Receipt, commit_key
from arco.servo.deploy import deploying, dynamic_values
from arco.servo.deploy.deploying import DeploymentHead
from arco.servo.deploy.dynamic_values import DynamicValues
from arco.servo.deploy.manifest import Deployment
from arco.servo.execute import desk_decisions
from arco.servo.execute.desk_decisions import DeskDecision
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.schedule import open_runs, pools, schedule_state
from arco.servo.schedule.open_runs import OpenRuns
from arco.servo.schedule.pools import PoolState
from arco.servo.schedule.schedule_state import ScheduleState
from arco.storage import cas, lease
from arco.storage.cas import CasObject, Codec
from arco.storage.keys import (
    AskedRunKey,
    AskedTroubleKey,
    AskedVerdictKey,
    CatalogCommitKey,
    CatalogStateKey,
    DeploymentHeadKey,
    DeploymentKey,
    DynamicValuesKey,
    FeedCheckpointKey,
    FeedPageKey,
    HeadKey,
    HeldDecisionKey,
    Key,
    LeaseKey,
    MarkerKey,
    OpenRunsKey,
    PlanningSnapshotKey,
    PointerKey,
    PoolKey,
    ReceiptKey,
    ScheduleKey,
    StagedIntentKey,
    ToldKey,
    TransactionKey,
    WorkspaceKey,
)
from arco.storage.port import Object, ObjectInfo, Version
from stand_ins.hand_clock import HandClock

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ROOT / "docs" / "formats"
SOURCE = ROOT / "src" / "arco"

KEYS: dict[str, type[Key]] = {
    "manifest": HeadKey,
    "commit": CatalogCommitKey,
    "state-file": CatalogStateKey,
    "told": ToldKey,
    "pointer": PointerKey,
    "marker": MarkerKey,
    "receipt": ReceiptKey,
    "transaction": TransactionKey,
    "feed-page": FeedPageKey,
    "feed-checkpoint": FeedCheckpointKey,
    "intent": StagedIntentKey,
    "lease": LeaseKey,
    "deployment": DeploymentKey,
    "deployment-head": DeploymentHeadKey,
    "planning-snapshot": PlanningSnapshotKey,
    "dynamic-values": DynamicValuesKey,
    "open-runs": OpenRunsKey,
    "pool": PoolKey,
    "schedule": ScheduleKey,
    "held-decision": HeldDecisionKey,
    "asked-run": AskedRunKey,
    "asked-verdict": AskedVerdictKey,
    "asked-trouble": AskedTroubleKey,
    "workspace": WorkspaceKey,
}
CODECS: dict[str, Codec[Any]] = {
    "manifest": ManifestCodec(),
    "told": untold.MarkCodec(),
    "pointer": pointer.PointerCodec("10e0c4df-2919-45f6-9a50-3e54fd572236"),
    "marker": idempotency.MarkerCodec(),
    "transaction": transaction_records.RecordCodec("01941f29-7c01-7678-b19c-d77f22facf42"),
    "lease": lease.LeaseCodec(),
    "cas-object": lease.LeaseCodec(),
    "deployment-head": deploying.HeadCodec(),
    "dynamic-values": dynamic_values.DynamicValuesCodec(),
    "open-runs": open_runs.OpenRunsCodec(),
    "pool": pools.PoolCodec(),
    "schedule": schedule_state.StateCodec(),
    "held-decision": desk_decisions.DecisionCodec(),
    "asked-trouble": asked_troubles.AskedTroubleCodec(),
    "workspace": workspaces.WorkspaceCodec(),
}
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "commit": Commit,
    "receipt": Receipt,
    "feed-page": FeedPage,
    "feed-checkpoint": FeedCheckpoint,
    "intent": Intent,
    "deployment": Deployment,
    "planning-snapshot": PlanningSnapshot,
    "asked-run": AskedRun,
    "asked-verdict": AskedVerdict,
}
ROOTS = (
    Manifest, Commit, Mark, Namespace, Entry, Dropped, Pointer, Marker, Receipt, Intent, Deployment, DeploymentHead,
    Manifest, Commit, Namespace, Entry, Dropped, Pointer, Marker, Receipt, Record, Intent, Deployment, DeploymentHead,
    PlanningSnapshot, DynamicValues, OpenRuns, PoolState, ScheduleState, DeskDecision, FeedPage, FeedCheckpoint,
    AskedRun, AskedVerdict, AskedTrouble, WorkspaceRecord,
)  # fmt: skip
PAGES = sorted({*KEYS, *CODECS})

Row = tuple[str, ...]


# Reading pages


def page(name: str) -> str:
    return (FORMATS / f"{name}.md").read_text()


def sections(text: str) -> dict[str, list[Row]]:
    """The tables of a page, by the heading before each; their cells without backticks around a lone word."""
    found: dict[str, list[Row]] = {}
    heading, inside = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip("`")
        elif line.startswith("|---"):
            inside = True
            found.setdefault(heading, [])
        elif inside and line.startswith("|"):
            found[heading].append(tuple(cell.strip() for cell in line.strip("|").split(" | ")))
        else:
            inside = False
    return found


def plain(cell: str) -> str:
    """A cell without its links."""
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", cell).strip()


def examples(name: str) -> list[bytes]:
    return [block.encode() for block in re.findall(r"```json\n(.*?)```", page(name), re.DOTALL)]


def compact(text: bytes) -> bytes:
    return msgspec.json.format(text, indent=-1)


ALL_SECTIONS = {name: sections(page(name)) for name in PAGES}


# Reading code


def type_text(kind: Any) -> str:
    """A type in the words of docs/formats/README.md."""
    if kind == Operation:
        return "operation"
    if get_origin(kind) in {Union, UnionType}:
        words = [word for one in get_args(kind) for word in type_words(one)]
        return _either(words)
    return _either(type_words(kind))


def type_words(kind: Any) -> list[str]:
    simple = {int: "number", float: "number", str: "text", bool: "true or false", type(None): "null", Any: "anything"}
    if kind in simple:
        return [simple[kind]]
    if get_origin(kind) in {tuple, list}:
        return [f"list of {type_text(get_args(kind)[0])}"]
    if get_origin(kind) is dict:
        value = get_args(kind)[1]
        return ["object" if value is Any else f"object of {type_text(value)}"]
    if issubclass(kind, StrEnum):
        return [f"`{one.value}`" for one in kind]
    return [f"`{kind.__name__}`"]


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def fields_of(struct: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The fields of a struct as they are written, with their types in words."""
    hints = get_type_hints(struct)
    written = [(f"`{one.encode_name}`", type_text(hints[one.name])) for one in msgspec.structs.fields(struct)]
    config = struct.__struct_config__
    return [(f"`{config.tag_field}`", f"`{config.tag}`"), *written] if config.tag_field else written


def structs_of(kind: Any) -> set[type[msgspec.Struct]]:
    """All structs that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        below = (structs_of(hint) for hint in get_type_hints(kind).values())
        return {kind}.union(*below)
    return set().union(*(structs_of(one) for one in get_args(kind)))


STRUCTS = sorted(set().union(*(structs_of(one) for one in ROOTS)), key=lambda struct: struct.__name__)


# Fields


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_is_documented_with_its_type_and_no_other(struct: type[msgspec.Struct]) -> None:
    described = [found[struct.__name__] for found in ALL_SECTIONS.values() if struct.__name__ in found]
    assert len(described) == 1, f"{struct.__name__} has {len(described)} sections"
    assert [(row[0], plain(row[1])) for row in described[0]] == fields_of(struct)
    assert not [row[0] for row in described[0] if not plain(row[2])], "every field has a meaning"


def test_no_section_describes_what_is_not_there() -> None:
    heads = {name: set(re.findall(r"^#+ `(\w+)`$", page(name), re.MULTILINE)) for name in PAGES}
    described = [struct for found in heads.values() for struct in found]
    assert sorted(described) == [struct.__name__ for struct in STRUCTS]


def test_the_columns_of_a_state_file_are_documented() -> None:
    described = [(row[0].strip("`"), row[1]) for row in ALL_SECTIONS["state-file"]["Columns"]]
    assert described == [(one.name, arrow_text(one.type)) for one in state_files._schema()]


def arrow_text(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def test_the_header_of_every_shared_document_is_documented() -> None:
    described = [row[0].strip("`") for row in ALL_SECTIONS["cas-object"]["Compare-and-swap object"]]
    assert described == list(cas._HEADER)


def test_the_fields_of_a_lease_are_documented() -> None:
    described = {row[0].strip("`") for row in ALL_SECTIONS["lease"]["Lease"]}
    assert described == set(lease.LeaseCodec().encode(lease.LeaseState(None, 0))[1])


# Names, versions, limits, files


@pytest.mark.parametrize("name", KEYS)
def test_a_page_says_what_its_objects_are_called(name: str) -> None:
    assert f"`{{tenant}}/{{workspace}}/{KEYS[name].template}`" in page(name)


@pytest.mark.parametrize("name", [name for name in CODECS if name != "cas-object"])
def test_a_page_says_its_format_and_version(name: str) -> None:
    text = " ".join(page(name).split())
    decoded = decode_shared(name, examples(name)[0]) if examples(name) else None
    version = CODECS[name].encode(decoded.value)[0] if decoded else 1
    assert f"format `{CODECS[name].format}` version {version}" in text


def test_limits_that_pages_name_exist() -> None:
    named = {word for path in FORMATS.glob("*.md") for word in re.findall(r"`([A-Z_]+_(?:S|MAX))`", path.read_text())}
    assert named
    assert not [word for word in named if not hasattr(limits, word)]


def test_rules_are_kept_by_files_that_exist() -> None:
    rows = [row for found in ALL_SECTIONS.values() for row in found.get("Invariants", [])]
    files = {word for row in rows for word in re.findall(r"`(\w+\.py)`", row[1])}
    assert len(rows) > 20
    assert all(len(row) == 3 and all(row) for row in rows), "a rule, who keeps it, and what happens without it"
    places = (SOURCE / "catalog", SOURCE / "servo" / "deploy", SOURCE / "servo" / "schedule", SOURCE / "servo" / "execute")
    assert not [word for word in files if not any((place / word).exists() for place in places)]


# Examples


def decode_shared(name: str, example: bytes) -> Any:
    return shared(name)._decode(Object(ObjectInfo("key", len(example), Version("1"), 0), example))


def shared(name: str) -> CasObject[Any]:
    return CasObject(None, "key", CODECS[name], HandClock(), SeededEntropy(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CODECS)
def test_examples_of_shared_documents_are_what_the_code_writes(name: str) -> None:
    assert examples(name) or name == "lease"
    for example in examples(name):
        assert shared(name)._encode(decode_shared(name, example)) == compact(example)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_of_immutable_documents_are_what_the_code_writes(name: str) -> None:
    (example,) = examples(name)
    assert msgspec.json.encode(msgspec.json.decode(example, type=DOCUMENTS[name]), order="deterministic") == compact(
        example
    )


def test_example_rows_are_what_a_state_file_holds() -> None:
    kinds: dict[str, type[msgspec.Struct]] = {"namespace": Namespace, "entry": Entry}
    rows = [json.loads(example) for example in examples("state-file")]
    assert [(row["kind"], row["gone"]) for row in rows] == [("namespace", False), ("entry", False), ("entry", True)]
    for row in rows:
        document = None if row["gone"] else msgspec.json.decode(row["document"], type=kinds[row["kind"]])
        data, _ = state_files.encode_changes([(row["kind"], row["key"], document)])
        assert pq.read_table(io.BytesIO(data)).to_pylist() == [row]
        state_files.load_into(names.Names(), data, content_hash(data), "example")


def test_the_examples_are_of_one_table() -> None:
    (commit,) = (msgspec.json.decode(one, type=Commit) for one in examples("commit"))
    (receipt,) = (msgspec.json.decode(one, type=Receipt) for one in examples("receipt"))
    head = decode_shared("manifest", examples("manifest")[0]).value
    table = decode_shared("pointer", examples("pointer")[0]).value
    marker = decode_shared("marker", examples("marker")[0]).value
    assert head.tail == (commit,)
    assert (receipt.commit,) == table.published
    assert marker.metadata_location == table.metadata_location
    assert commit.operations[0].key_hash == table.created_by


def test_hashes_are_made_as_the_pages_say() -> None:
    head = decode_shared("manifest", examples("manifest")[0]).value
    stored = compact(examples("commit")[0])
    prefixed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"catalog commit", stored))
    assert hashlib.sha256(prefixed).hexdigest() == head.last_commit_hash
    (receipt,) = (msgspec.json.decode(one, type=Receipt) for one in examples("receipt"))
    text = f"{receipt.commit.commit_number} {receipt.commit.metadata_location}"
    assert hashlib.sha256(text.encode()).hexdigest() == receipt.commit_key
    assert commit_key(receipt.commit.metadata_location, receipt.commit.commit_number) == receipt.commit_key


# Versions


@pytest.mark.parametrize("module", [manifest, pointer, idempotency], ids=lambda module: module.__name__)
def test_a_new_version_gets_a_stored_root(module: Any) -> None:
    stored = {int(path.name[1:]) for path in (ROOT / "tests" / "compat").glob("v*") if path.is_dir()}
    assert set(range(1, module._FORMAT_VERSION + 1)) <= stored
