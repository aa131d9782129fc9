"""The pages of docs/formats about the fold say what the code writes: every field with its type, and examples that are whole."""

import re
from typing import Any

import msgspec
import pytest

from arco.fold import heads, notifying
from arco.fold.consumed import ConsumedList, decode_list
from arco.fold.dead_letters import DeadLetter
from arco.fold.heads import HeadState
from arco.fold.manifests import Manifest, RootManifest, decode_manifest
from arco.fold.notifying import Hint
from arco.kernel.entropy import SeededEntropy
from arco.kernel.fingerprint import content_hash
from arco.ledger.iceberg_events import TableCommitted
from arco.storage import keys
from arco.storage.cas import CasObject
from arco.storage.port import Object, ObjectInfo, Version
from stand_ins.hand_clock import HandClock
from unit.test_formats import SOURCE, compact, examples, fields_of, page, plain, sections, structs_of

KEYS: dict[str, type[keys.Key]] = {
    "fold-manifest": keys.ManifestKey,
    "fold-head": keys.HeadKey,
    "consumed-list": keys.ConsumedKey,
    "dead-letter": keys.DeadLetterKey,
    "fold-hint": keys.HintKey,
}
CODECS: dict[str, Any] = {"fold-head": heads.HeadCodec(), "fold-hint": notifying.HintCodec()}
DOCUMENTS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "fold-manifest": (Manifest, RootManifest),
    "consumed-list": (ConsumedList,),
    "dead-letter": (DeadLetter,),
    "table-committed": (TableCommitted,),
}
PAGES = sorted({*KEYS, *DOCUMENTS})
ROOTS = (Manifest, RootManifest, HeadState, Hint, ConsumedList, DeadLetter, TableCommitted)
STRUCTS = sorted(set().union(*(structs_of(one) for one in ROOTS)), key=lambda struct: struct.__name__)
ALL_SECTIONS = {name: sections(page(name)) for name in PAGES}


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_field_is_documented_with_its_type_and_no_other(struct):
    described = [found[struct.__name__] for found in ALL_SECTIONS.values() if struct.__name__ in found]
    assert len(described) == 1, f"{struct.__name__} has {len(described)} sections"
    assert [(row[0], plain(row[1])) for row in described[0]] == fields_of(struct)
    assert not [row[0] for row in described[0] if not plain(row[2])], "every field has a meaning"


def test_no_section_describes_what_is_not_there():
    described = [struct for name in PAGES for struct in re.findall(r"^#+ `(\w+)`$", page(name), re.MULTILINE)]
    assert sorted(described) == [struct.__name__ for struct in STRUCTS]


@pytest.mark.parametrize("name", KEYS)
def test_a_page_says_what_its_objects_are_called(name):
    assert f"`{{tenant}}/{{workspace}}/{KEYS[name].template}`" in page(name)


def test_rules_are_kept_by_files_that_exist():
    rows = [row for found in ALL_SECTIONS.values() for row in found.get("Invariants", [])]
    files = {word for row in rows for word in re.findall(r"`(\w+\.py)`", row[1])}
    assert len(rows) > 15
    assert all(len(row) == 3 and all(row) for row in rows), "a rule, who keeps it, and what happens without it"
    assert not [word for word in files if not (SOURCE / "fold" / word).exists()]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_of_immutable_documents_are_what_the_code_writes(name):
    for example, struct in zip(examples(name), DOCUMENTS[name], strict=True):
        decoded = msgspec.json.decode(example, type=struct)
        assert msgspec.json.encode(decoded, order="deterministic") == compact(example)


def shared(name: str) -> Any:
    (example,) = examples(name)
    made = CasObject(None, "key", CODECS[name], HandClock(), SeededEntropy(1))  # type: ignore[arg-type]
    held = made._decode(Object(ObjectInfo("key", len(example), Version("1"), 0), example))
    assert made._encode(held) == compact(example)
    return held.value


def test_examples_of_shared_documents_are_what_the_code_writes():
    assert shared("fold-hint").segments
    assert shared("fold-head").manifest.sequence == 2
    for name, codec in CODECS.items():
        assert f"format `{codec.format}` version 1" in " ".join(page(name).split())


def test_the_examples_are_of_one_publication():
    manifest, root = (compact(one) for one in examples("fold-manifest"))
    (listed,) = (compact(one) for one in examples("consumed-list"))
    head = shared("fold-head")
    found = decode_manifest(manifest, Manifest, head.manifest, "example")
    assert msgspec.json.decode(root, type=RootManifest).heads[0].manifest == head.manifest
    decode_list(listed, found.consumed[0], "example")
    (letter,) = (msgspec.json.decode(one, type=DeadLetter) for one in examples("dead-letter"))
    assert letter.segment.endswith(msgspec.json.decode(listed, type=ConsumedList).names[0])
    assert content_hash(manifest) == head.manifest.checksum
