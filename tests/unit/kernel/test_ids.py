"""Identifiers: each kind takes its own form and nothing else, and fresh ones grow whatever the clock does."""

import copy
import pickle
import uuid

import pytest

from arco.kernel import ids
from arco.kernel.entropy import SeededEntropy, SystemEntropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import Identifier, UlidSource, clip, decode_ulid, encode_ulid, new_uuid4, new_uuid7
from stand_ins.hand_clock import NEW_YEAR_2025_MS, ConstantEntropy, HandClock, ReadingsClock

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
UUID4 = "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40"
UUID7 = "01941f29-7c00-7abc-8def-0123456789ab"

ULID_KINDS = (
    ids.AssetId, ids.ColumnId, ids.NamespaceId, ids.MaterializationId, ids.RunId, ids.EventId, ids.SegmentId, ids.CommitId,
    ids.SnapshotId, ids.DeploymentId, ids.WriteId, ids.WriterId, ids.HolderId, ids.DropId,
    ids.WorkerId, ids.RequestId, ids.ResultId, ids.ConsumedListId,
)  # fmt: skip
NOT_ULIDS = (
    ULID.lower(), ULID[:-1], f"{ULID}0", f"8{ULID[1:]}", f"Z{ULID[1:]}", *(f"{ULID[:-1]}{letter}" for letter in "ILOUilou"),
    "٠١ARZ3NDEKTSV4RRFFQ69G5FA",
)  # fmt: skip
NOT_UUIDS = (
    UUID4.upper(), UUID4.replace("-", ""), f"{{{UUID4}}}", f"urn:uuid:{UUID4}", UUID4[:-1], f"{UUID4}0", UUID4.replace("-", "_"),
    UUID4.replace("0", "٠"),
)  # fmt: skip
NOT_UUID7S = (*NOT_UUIDS, UUID4, UUID7.replace("-7", "-4"), UUID7.replace("-8d", "-cd"), UUID7.replace("-8d", "-7d"))
NOT_HEX = ("a" * 63, "a" * 65, "A" * 64, "g" * 64)

# Kind, texts of its form, texts that are close to it.
FORMS: tuple[tuple[type[Identifier], tuple[str, ...], tuple[str, ...]], ...] = (
    *((kind, (ULID, "0" * 26, "7" + "Z" * 25), NOT_ULIDS) for kind in ULID_KINDS),
    (ids.TableUuid, (UUID4, UUID7, "0" * 8 + "-0000-0000-0000-" + "0" * 12), NOT_UUIDS),
    (ids.ViewUuid, (UUID4, UUID7), NOT_UUIDS),
    (ids.IdempotencyKey, (UUID4, UUID7), NOT_UUIDS),
    (ids.TransactionId, (UUID7, "ffffffff-ffff-7fff-bfff-ffffffffffff"), NOT_UUID7S),
    (ids.TimedIdempotencyKey, (UUID7,), NOT_UUID7S),
    (ids.KeyHash, ("0123456789abcdef" * 4,), NOT_HEX),
    (ids.PartitionId, ("part_0123456789abcdef",), ("part_", "part_" + "a" * 15, "part_" + "a" * 17, "part_" + "A" * 16)),
    (ids.EdgeId, ("edge_0123456789abcdef",), ("edge-0123456789abcdef", "part_0123456789abcdef", "edge_" + "g" * 16)),
    (ids.TaskId, ("task_0123456789abcdef",), ("Task_0123456789abcdef", "task_0123456789abcde", "0123456789abcdef")),
    (ids.PlanningSnapshotId, ("facts_" + "0a" * 32,), ("facts_" + "0a" * 31, "facts_" + "0A" * 32, "0a" * 32)),
    (ids.PlanId, ("plan_" + "0a" * 32,), ("plan_" + "0a" * 31, "plan_" + "0A" * 32, "0a" * 32)),
    (
        ids.VersionId,
        ("v_00000", "v_00001", "v_99999", "v_100000", "v_9999999999"),
        ("v_0", "v_1234", "v_012345", "v_10000000000", "v_-0001", "00001", "V_00001", "v_٠٠٠٠١"),
    ),
    (ids.CodeVersionId, ("4f2a9c1", "sha256:ab", "v1.2.3+build-7", "A" * 128), ("A" * 129, ".git", "-x", "a b", "a/b", "ä")),
    *(
        (kind, ("nightly-7", "ada@example.org", "A" * 200), ("A" * 201, ".x", "-x", "a b", "a/b", "ä"))
        for kind in (ids.PipelineId, ids.PrincipalId, ids.ClientId, ids.StreamId, ids.CorrelationId)
    ),
    (ids.TraceId, ("0af7651916cd43dd8448eb211c80319c",), ("0" * 32, "0AF7651916CD43DD8448EB211C80319C", "a" * 31, "a" * 33)),
    (ids.ScheduleName, ("nightly", "a", "every_6_hours", "a" * 63), ("Nightly", "0a", "_a", "a-b", "a.b", "a" * 64, "ä")),
    (
        ids.CheckId,
        ("not_null", "orders.not_null", "a.0.b.c"),
        ("Not_null", "0a", "a.", ".a", "a..b", "a.b.c.d.e", "a-b", "a" * 65, "a." + "b" * 65),
    ),
)  # fmt: skip
HOSTILE = (
    "", " ", "\n", "\0", ".", "..", "/", "../..", "%2e%2e", "a/../b", "\\", "~", "$(id)", "{}", "*", "?", "null", "None", "ä",
    "\u202e", "\ud800", "😀", "x" * 100_000,
)  # fmt: skip

by_kind = pytest.mark.parametrize(("kind", "good", "bad"), FORMS, ids=[kind.__name__ for kind, _, _ in FORMS])


def kinds_of(kind: type[Identifier]) -> set[type[Identifier]]:
    return {kind}.union(*(kinds_of(below) for below in kind.__subclasses__()))


def test_every_kind_of_identifier_has_a_line_in_the_table():
    families = {ids.Identifier, ids.GivenIdentifier, ids.UlidIdentifier, ids.UuidIdentifier, ids.Uuid7Identifier}
    defined = {kind for kind in kinds_of(Identifier) if kind.__module__ == ids.__name__}
    assert defined - families == {kind for kind, _, _ in FORMS}


@by_kind
def test_an_identifier_accepts_its_form(kind, good, bad):
    for text in good:
        made = kind(text)
        assert made == text
        assert type(made) is kind


@by_kind
def test_an_identifier_refuses_what_is_close_to_its_form(kind, good, bad):
    for text in bad:
        with pytest.raises(InvalidInput):
            kind(text)


@by_kind
def test_an_identifier_refuses_hostile_text(kind, good, bad):
    wrapped = [
        f"{before}{text}{after}" for text in good for before, after in (("", "\n"), (" ", ""), ("", "\0"), ("../", ""))
    ]
    for text in (*HOSTILE, *wrapped):
        if text in good:
            continue
        if issubclass(kind, ids.CodeVersionId | ids.GivenIdentifier) and text in {"null", "None"}:
            continue  # a tag, and what somebody else names, may be called anything
        if kind in {ids.CheckId, ids.ScheduleName} and text == "null":
            continue  # and so may a check, and a schedule
        with pytest.raises(InvalidInput):
            kind(text)


@by_kind
def test_a_refusal_names_the_kind_and_the_form_and_stays_short(kind, good, bad):
    with pytest.raises(InvalidInput) as caught:
        kind("\n" * 100_000)
    assert kind.what in caught.value.message
    assert kind.form in caught.value.hint
    assert len(caught.value.one_line()) < 500


@by_kind
def test_an_identifier_survives_copying_and_pickling(kind, good, bad):
    made = kind(good[0])
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert type(again) is kind


@by_kind
def test_an_identifier_shows_its_kind_to_people_and_only_its_text_to_formats(kind, good, bad):
    made = kind(good[0])
    assert repr(made) == f"{kind.__name__}({good[0]!r})"
    assert f"{made}" == str(made) == good[0]


@pytest.mark.parametrize("nothing", [None, 5, b"01ARZ3NDEKTSV4RRFFQ69G5FAV", ["01"], 1.5])
def test_what_is_not_text_is_no_identifier(nothing):
    with pytest.raises(TypeError):
        ids.AssetId(nothing)


# ULIDs


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "00000000000000000000000000"),
        (1, "00000000000000000000000001"),
        (31, "0000000000000000000000000Z"),
        (32, "00000000000000000000000010"),
        (0x1563E3AB5D3D6764C61EFB99302BD5B, ULID),
        (1469918176385 << 80, "01ARYZ6S410000000000000000"),
        ((1 << 128) - 1, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
    ],
)
def test_a_number_and_its_ulid_are_two_spellings_of_one_thing(number, text):
    assert encode_ulid(number) == text
    assert decode_ulid(text) == number


@pytest.mark.parametrize("number", [-1, 1 << 128, -(1 << 128), 1 << 400])
def test_a_number_that_is_not_of_128_bits_has_no_ulid(number):
    with pytest.raises(InvalidInput):
        encode_ulid(number)


@pytest.mark.parametrize("text", [*NOT_ULIDS, *HOSTILE])
def test_only_the_canonical_spelling_of_a_ulid_is_read(text):
    with pytest.raises(InvalidInput):
        decode_ulid(text)


def test_a_ulid_tells_the_millisecond_it_was_made_at():
    source = UlidSource(HandClock(), SeededEntropy(1))
    assert ids.RunId(source.next()).time_ms == NEW_YEAR_2025_MS


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_a_ulid_never_goes_back_when_the_clock_stands_still(byte):
    source = UlidSource(HandClock(), ConstantEntropy(byte))
    made = [source.next() for _ in range(200)]
    assert made == sorted(set(made))


def test_a_ulid_never_goes_back_when_the_clock_does():
    start = NEW_YEAR_2025_MS
    readings = [start, start - 1, start - 3_600_000, 0, -5, start, start + 1, start - 1, start + 1, start + 2]
    source = UlidSource(ReadingsClock(readings), SeededEntropy(2))
    made = [source.next() for _ in readings]
    assert made == sorted(set(made))
    assert ids.RunId(made[-1]).time_ms == start + 2


def test_a_ulid_whose_random_part_is_used_up_borrows_the_next_millisecond():
    source = UlidSource(HandClock(), ConstantEntropy(0xFF))
    first, second = ids.RunId(source.next()), ids.RunId(source.next())
    assert first < second
    assert (first.time_ms, second.time_ms) == (NEW_YEAR_2025_MS, NEW_YEAR_2025_MS + 1)


def test_two_processes_that_share_a_millisecond_do_not_walk_in_each_others_path():
    one, other = (UlidSource(HandClock(), SeededEntropy(seed)) for seed in (3, 4))
    assert not {one.next() for _ in range(500)} & {other.next() for _ in range(500)}


# UUIDs


@pytest.mark.parametrize("entropy", [ConstantEntropy(0x00), ConstantEntropy(0xFF), SeededEntropy(5), SystemEntropy()])
@pytest.mark.parametrize("at_ms", [0, 1, NEW_YEAR_2025_MS, (1 << 48) - 1])
def test_a_fresh_uuid7_is_of_version_7_and_tells_its_time(entropy, at_ms):
    text = new_uuid7(HandClock(at_ms), entropy)
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (7, uuid.RFC_4122, text)
    assert ids.TransactionId(text).time_ms == ids.TimedIdempotencyKey(text).time_ms == at_ms


def test_uuid7s_of_one_millisecond_differ():
    clock, entropy = HandClock(), SeededEntropy(6)
    assert len({new_uuid7(clock, entropy) for _ in range(500)}) == 500


@pytest.mark.parametrize("entropy", [ConstantEntropy(0x00), ConstantEntropy(0xFF), SeededEntropy(7), SystemEntropy()])
def test_a_fresh_uuid4_is_of_version_4(entropy):
    text = new_uuid4(entropy)
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (4, uuid.RFC_4122, text)
    assert ids.TableUuid(text) == text


def test_uuid4s_differ():
    entropy = SeededEntropy(8)
    assert len({new_uuid4(entropy) for _ in range(500)}) == 500


# The rest


@pytest.mark.parametrize(("number", "text"), [(0, "v_00000"), (7, "v_00007"), (99_999, "v_99999"), (123_456, "v_123456")])
def test_a_version_number_has_at_least_five_digits(number, text):
    assert ids.VersionId.of(number) == text


@pytest.mark.parametrize("number", [-1, 10**10])
def test_a_version_number_is_not_negative_and_not_endless(number):
    with pytest.raises(InvalidInput):
        ids.VersionId.of(number)


def test_text_in_a_message_is_clipped_and_says_so():
    assert clip("short") == "short"
    assert clip("x" * 80) == "x" * 80
    assert clip("x" * 81) == "x" * 80 + "…"
    assert clip("abcdef", 3) == "abc…"
