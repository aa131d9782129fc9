"""The page of the run log says what the code writes."""

import re
from pathlib import Path

import msgspec
import pytest

from arco.kernel.ids import RunId
from arco.ledger.run_entries import (
    AnyEntry,
    Batch,
    Failure,
    Publish,
    StagedCommit,
    TaskEnvelope,
    decode_batch,
    encode_batch,
)
from arco.servo.schedule.claims import Claim

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "formats" / "run-log.md").read_text()


def section(name: str) -> str:
    found = re.search(rf"^## `{name}`$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, name
    return found[1]


_STRUCTS = [Batch, TaskEnvelope, Publish, StagedCommit, Failure, Claim]


@pytest.mark.parametrize("struct", _STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_is_documented_and_no_other(struct: type[msgspec.Struct]) -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", section(struct.__name__), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)} == set(struct.__struct_fields__)


def test_every_entry_is_documented_with_its_fields_and_no_other() -> None:
    table = re.search(r"^## Entries$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert table
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", table[1], re.MULTILINE))
    written = {tag: set(re.findall(r"(?:^|, )`([a-z_]+)` ", fields)) for tag, fields in rows.items()}
    wanted = {str(kind.__struct_config__.tag): set(kind.__struct_fields__) - {"events"} for kind in AnyEntry.__args__}
    assert written == wanted


def test_the_example_is_what_the_code_writes() -> None:
    example = re.search(r"^```json\n(.*)\n```", PAGE, re.MULTILINE)
    assert example
    run = RunId(re.search(r"runs/([0-9A-Z]{26})/log/00000003", PAGE)[1])
    batch = decode_batch(run, 3, example[1].encode())
    assert encode_batch(batch) == example[1].encode()


def test_every_place_to_die_is_in_the_code() -> None:
    table = re.search(r"^## Places to die$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert table
    named = set(re.findall(r"^\| `([a-z_.]+)` \|", table[1], re.MULTILINE))
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "arco").rglob("*.py"))
    assert {point for point in named if f'reach("{point}")' not in source} == set()
    places = set(re.findall(r'reach\("(run\.[a-z_.]+)"\)', source))
    assert places - named <= {"run.worker_silent"}
