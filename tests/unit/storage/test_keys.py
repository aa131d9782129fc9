"""Object names: every kind pinned, every hostile name refused with a reason, everything inside its scope."""

from itertools import product
from typing import get_type_hints

import pytest
from msgspec.structs import fields

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import (
    AssetId,
    CommitId,
    ConsumedListId,
    DeploymentId,
    Identifier,
    KeyHash,
    MaterializationId,
    PlanningSnapshotId,
    RunId,
    ScheduleName,
    SegmentId,
    SnapshotId,
    TableUuid,
    TaskId,
    TransactionId,
    ViewUuid,
)
from arco.kernel.limits import KEY_BYTES_MAX
from arco.kernel.scope import Scope
from arco.storage import keys
from arco.storage.keys import Day, Domain, FileName, Head, MetadataHash, Phase, Slug, Word

SCOPE = Scope.of("acme", "prod")
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
UUID = "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40"
AT_MIDNIGHT = "01941f29-7c00-7abc-8def-0123456789ab"
BEFORE_MIDNIGHT = "01941f29-7bff-7abc-8def-0123456789ab"
HASH = "c0ffee" + "0" * 58
SHORT_HASH = "deadbeef" * 4

# One name of each kind, as it lies in the bucket. A change of a template is a change of the stored format.
FACTS = PlanningSnapshotId(f"facts_{HASH}")
PINNED: tuple[tuple[keys.Key, str], ...] = (
    (keys.HeadKey(SCOPE, Head.CATALOG), "_catalog/manifests/catalog.manifest.json"),
    (keys.ManifestKey(SCOPE, Head.LINEAGE, SnapshotId(ULID)), f"_catalog/manifests/lineage/{ULID}.json"),
    (keys.CatalogCommitKey(SCOPE, CommitId(ULID)), f"_catalog/core/commits/{ULID}.json"),
    (keys.CatalogStateKey(SCOPE, FileName(f"base-{ULID}.parquet")), f"_catalog/core/state/base-{ULID}.parquet"),
    (keys.ToldKey(SCOPE), "_catalog/core/told.json"),
    (keys.WorkspaceKey(SCOPE), "_catalog/workspace.json"),
    (keys.LeaseKey(SCOPE, Word("catalog")), "_catalog/core/locks/catalog.json"),
    (keys.PointerKey(SCOPE, TableUuid(UUID)), f"_catalog/iceberg_pointers/{UUID}.json"),
    (keys.MarkerKey(SCOPE, KeyHash(HASH)), f"_catalog/iceberg_idempotency/c0/{HASH}.json"),
    (keys.TransactionKey(SCOPE, TransactionId(AT_MIDNIGHT)), f"_catalog/iceberg_transactions/2025-01-01/{AT_MIDNIGHT}.json"),
    (keys.StagedIntentKey(SCOPE, TableUuid(UUID)), f"_catalog/iceberg_staged/{UUID}.json"),
    (
        keys.ReceiptKey(SCOPE, Day("2025-01-31"), Phase.PENDING, KeyHash(HASH)),
        f"_catalog/events/2025-01-31/iceberg/pending/{HASH}.json",
    ),
    (keys.FeedPageKey(SCOPE, 12), "_catalog/feed/pages/000000000012.json"),
    (keys.FeedCheckpointKey(SCOPE, 256), "_catalog/feed/checkpoints/000000000256.json"),
    (
        keys.SegmentKey(SCOPE, Domain.EXECUTION, Day("2025-12-09"), SegmentId(ULID)),
        f"_catalog/ledger/execution/2025-12-09/{ULID}.jsonl",
    ),
    (
        keys.ArchivedSegmentKey(SCOPE, Domain.EXECUTION, Day("2025-12-09"), SegmentId(ULID)),
        f"_catalog/archive/execution/2025-12-09/{ULID}.jsonl",
    ),
    (keys.ConsumedKey(SCOPE, Head.QUALITY, ConsumedListId(ULID)), f"_catalog/consumed/quality/{ULID}.json"),
    (
        keys.DeadLetterKey(SCOPE, Head.QUALITY, SegmentId(ULID), KeyHash(HASH)),
        f"_catalog/dead_letters/quality/{ULID}/{HASH}.json",
    ),
    (keys.HintKey(SCOPE, Domain.LINEAGE), "_catalog/hints/lineage.json"),
    (
        keys.StateFileKey(SCOPE, Head.ASSETS, Word("partitions"), FileName("part-0.parquet")),
        "_catalog/state/assets/partitions/part-0.parquet",
    ),
    (keys.GovernanceKey(SCOPE, Word("tags"), FileName("pii.json")), "_catalog/governance/tags/pii.json"),
    (keys.AuditHeadKey(SCOPE, Word("access")), "_catalog/audit/access.head.json"),
    (keys.AuditSegmentKey(SCOPE, Word("access"), SegmentId(ULID)), f"_catalog/audit/access/{ULID}.jsonl"),
    (keys.RunPlanKey(SCOPE, RunId(ULID)), f"_catalog/runs/{ULID}/plan.json"),
    (keys.RunLogKey(SCOPE, RunId(ULID), 42), f"_catalog/runs/{ULID}/log/00000042.json"),
    (
        keys.RunClaimKey(SCOPE, RunId(ULID), TaskId("task_0123456789abcdef")),
        f"_catalog/runs/{ULID}/claims/task_0123456789abcdef.json",
    ),
    (
        keys.TaskLogKey(SCOPE, RunId(ULID), TaskId("task_0123456789abcdef"), 2, 3),
        f"_catalog/runs/{ULID}/logs/task_0123456789abcdef/0002-000003.jsonl",
    ),
    (keys.RunClosedKey(SCOPE, RunId(ULID)), f"_catalog/runs/{ULID}/closed.json"),
    (keys.RunRequestKey(SCOPE, KeyHash(HASH)), f"_catalog/run_requests/{HASH[:2]}/{HASH}.json"),
    (keys.AskedRunKey(SCOPE, KeyHash(HASH)), f"_catalog/asked_runs/open/{HASH}.json"),
    (keys.AskedVerdictKey(SCOPE, KeyHash(HASH)), f"_catalog/asked_runs/decided/{HASH[:2]}/{HASH}.json"),
    (keys.AskedTroubleKey(SCOPE, KeyHash(HASH)), f"_catalog/asked_runs/troubled/{HASH}.json"),
    (keys.OpenRunsKey(SCOPE), "_catalog/open_runs.json"),
    (keys.PoolKey(SCOPE, KeyHash("ab" * 32)), f"_catalog/pools/{'ab' * 32}.json"),
    (keys.DeploymentKey(SCOPE, DeploymentId(ULID)), f"_catalog/deployments/{ULID}.json"),
    (keys.DeploymentHeadKey(SCOPE, Word("shop")), "_catalog/deployments/heads/shop.json"),
    (keys.ScheduleKey(SCOPE, Word("shop"), ScheduleName("nightly")), "_catalog/schedules/shop/nightly.json"),
    (keys.HeldDecisionKey(SCOPE, MaterializationId(ULID), Word("output")), f"_catalog/quarantine/{ULID}/output.json"),
    (keys.PlanningSnapshotKey(SCOPE, FACTS), f"_catalog/planning/{FACTS}.json"),
    (
        keys.DynamicValuesKey(SCOPE, AssetId(ULID), KeyHash(HASH)),
        f"_catalog/dynamic_partitions/{ULID}/{HASH}.json",
    ),
    (keys.UpkeepKey(SCOPE, Word("clock")), "_catalog/upkeep/clock.json"),
    (
        keys.TableMetadataKey(SCOPE, Slug("orders"), TableUuid(UUID), 7, MetadataHash(SHORT_HASH)),
        f"data/orders-{UUID}/metadata/00007-{SHORT_HASH}.metadata.json",
    ),
    (
        keys.TableFileKey(SCOPE, Slug("orders"), TableUuid(UUID), Word("data"), FileName("00000-0.parquet")),
        f"data/orders-{UUID}/data/00000-0.parquet",
    ),
    (
        keys.ViewMetadataKey(SCOPE, Slug("orders_v"), ViewUuid(UUID), 0, MetadataHash(SHORT_HASH)),
        f"views/orders_v-{UUID}/metadata/00000-{SHORT_HASH}.metadata.json",
    ),
)  # fmt: skip
pinned = pytest.mark.parametrize(("key", "tail"), PINNED, ids=[type(key).__name__ for key, _ in PINNED])

# Values that differ little, to be combined in every way.
POOL: dict[object, tuple[object, ...]] = {
    Scope: (SCOPE, Scope.of("acme", "pro"), Scope.of("acm", "prod"), Scope.of("prod", "acme")),
    Word: (Word("a"), Word("data"), Word("metadata"), Word("log"), Word("plan")),
    FileName: (FileName("a"), FileName("a.json"), FileName("plan.json"), FileName(f"{ULID}.json"), FileName("a.head.json")),
    Slug: (Slug("a"), Slug("_"), Slug("a_"), Slug("0b54c2a4")),
    Day: (Day("2025-01-01"), Day("2025-01-02")),
    KeyHash: (KeyHash(HASH), KeyHash("c1" + HASH[2:])),
    MetadataHash: (MetadataHash(SHORT_HASH), MetadataHash("0" * 32)),
    TransactionId: (TransactionId(AT_MIDNIGHT), TransactionId(BEFORE_MIDNIGHT)),
    TaskId: (TaskId("task_0123456789abcdef"), TaskId("task_0123456789abcde0")),
    int: (0, 1, 10, 99_999, 100_000, 99_999_999, 100_000_000, 10**19),
    PlanningSnapshotId: (FACTS, PlanningSnapshotId("facts_" + "0" * 64)),
    Head: tuple(Head),
    Domain: tuple(Domain),
    Phase: tuple(Phase),
    TableUuid: (TableUuid(UUID), TableUuid(AT_MIDNIGHT)),
    ScheduleName: (ScheduleName("nightly"), ScheduleName("n")),
    ViewUuid: (ViewUuid(UUID), ViewUuid(AT_MIDNIGHT)),
} | {
    kind: (kind(ULID), kind("0" * 26))
    for kind in (AssetId, CommitId, ConsumedListId, DeploymentId, MaterializationId, RunId, SegmentId, SnapshotId)
}
TRAVERSALS = (
    "..", ".", "../x", "..\\x", "a/../../b", "/etc/passwd", "a/b", "", "%2e%2e%2f", "..%2f", "a\0", "a\n", "\u2025",
    "\uff0e\uff0e", "a//b", "~root", "C:\\x", ".arco",
)  # fmt: skip


def every_key() -> list[keys.Key]:
    made = []
    for kind in keys.KINDS:
        hints = get_type_hints(kind)
        made += [kind(*values) for values in product(*(POOL[hints[field.name]] for field in fields(kind)))]
    return made


def test_every_kind_has_a_pinned_example():
    assert [type(key) for key, _ in PINNED] == list(keys.KINDS)


def test_every_kind_of_key_is_read():
    defined = {one for one in vars(keys).values() if isinstance(one, type) and issubclass(one, keys.Key)}
    assert defined - {keys.Key} == set(keys.KINDS)


@pinned
def test_a_name_is_the_same_for_ever(key, tail):
    assert str(key) == f"acme/prod/{tail}"


@pinned
def test_a_name_reads_back_as_its_key(key, tail):
    again = keys.parse(f"acme/prod/{tail}")
    assert again == key
    assert type(again) is type(key)
    assert [type(getattr(again, field.name)) for field in fields(key)] == [
        type(getattr(key, field.name)) for field in fields(key)
    ]


def test_two_different_keys_never_share_a_name_and_each_reads_back():
    made = every_key()
    names = {str(key): key for key in made}
    assert len(names) == len(made) == len(set(made))
    for name, key in names.items():
        assert keys.parse(name) == key


def test_every_name_lies_inside_its_scope():
    for key in every_key():
        assert str(key).startswith(keys.prefix_of(key.scope))


# Derived parts


def test_a_marker_lies_in_the_folder_of_its_first_two_digits():
    for fan_out in ("00", "0a", "ff"):
        key = keys.MarkerKey(SCOPE, KeyHash(fan_out + "0" * 62))
        assert str(key) == f"acme/prod/_catalog/iceberg_idempotency/{fan_out}/{fan_out}{'0' * 62}.json"


@pytest.mark.parametrize("fan_out", ["c1", "C0", "c", "c0f", "..", ""])
def test_a_marker_in_a_folder_that_is_not_its_own_is_refused(fan_out):
    with pytest.raises(InvalidInput):
        keys.parse(f"acme/prod/_catalog/iceberg_idempotency/{fan_out}/{HASH}.json")


@pytest.mark.parametrize(("transaction", "date"), [(BEFORE_MIDNIGHT, "2024-12-31"), (AT_MIDNIGHT, "2025-01-01")])
def test_a_transaction_lies_on_the_utc_date_of_its_own_time(transaction, date):
    name = f"acme/prod/_catalog/iceberg_transactions/{date}/{transaction}.json"
    assert str(keys.TransactionKey(SCOPE, TransactionId(transaction))) == name
    assert keys.parse(name) == keys.TransactionKey(SCOPE, TransactionId(transaction))


@pytest.mark.parametrize("date", ["2024-12-31", "2025-01-02", "1970-01-01", "2025-1-1", "today", "2025-01-01Z"])
def test_a_transaction_on_a_date_that_is_not_its_own_is_refused(date):
    with pytest.raises(InvalidInput):
        keys.parse(f"acme/prod/_catalog/iceberg_transactions/{date}/{AT_MIDNIGHT}.json")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "00000000"), (7, "00000007"), (99_999_999, "99999999"), (100_000_000, "100000000")]
)
def test_numbers_are_padded_so_that_they_list_in_order_and_may_outgrow_it(number, text):
    key = keys.RunLogKey(SCOPE, RunId(ULID), number)
    assert str(key).endswith(f"/log/{text}.json")
    assert keys.parse(str(key)) == key


@pytest.mark.parametrize("text", ["7", "0000007", "000000007", "-0000001", "0000_007", "٠٠٠٠٠٠٠٧", "0x000007", "1" * 21])
def test_a_number_in_a_name_has_one_spelling(text):
    with pytest.raises(InvalidInput):
        keys.parse(f"acme/prod/_catalog/runs/{ULID}/log/{text}.json")


def test_a_negative_number_has_no_name():
    with pytest.raises(InvalidInput):
        str(keys.RunLogKey(SCOPE, RunId(ULID), -1))
    with pytest.raises(InvalidInput):
        str(keys.TableMetadataKey(SCOPE, Slug("a"), TableUuid(UUID), -1, MetadataHash(SHORT_HASH)))


def test_the_greatest_name_fits_every_store():
    widest = Scope.of("a" * 63, "b" * 63)
    key = keys.TableFileKey(widest, Slug("s" * 48), TableUuid(UUID), Word("w" * 63), FileName("f" * 200))
    assert len(str(key).encode()) <= KEY_BYTES_MAX
    assert keys.parse(str(key)) == key


# What is refused


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "acme",
        "acme/prod",
        "acme/prod/",
        "acme/prod/_catalog",
        "acme/prod/_catalog/",
        "acme/prod/unknown.json",
        "/acme/prod/_catalog/manifests/catalog.manifest.json",
        "acme//prod/_catalog/manifests/catalog.manifest.json",
        "acme/prod/_catalog/manifests/catalog.manifest.json/",
        "acme/prod/_catalog/manifests/catalog.manifest.json\n",
        "acme/prod/_catalog/manifests/Catalog.manifest.json",
        "acme/prod/_catalog/manifests/unknown.manifest.json",
        "acme/prod/_catalog/manifests/catalogXmanifest.json",
        "acme/_catalog/manifests/catalog.manifest.json",
        "Acme/prod/_catalog/manifests/catalog.manifest.json",
        "acme.prod/x/_catalog/manifests/catalog.manifest.json",
        "acme/prod/x/_catalog/manifests/catalog.manifest.json",
        "acme/pr od/_catalog/manifests/catalog.manifest.json",
        ".arco/tmp/_catalog/manifests/catalog.manifest.json",
        f"acme/prod/_catalog/core/commits/{ULID.lower()}.json",
        f"acme/prod/_catalog/core/commits/{ULID[:8]}.json",
        f"acme/prod/_catalog/core/commits/{ULID}.JSON",
        f"acme/prod/_catalog/iceberg_pointers/{UUID.upper()}.json",
        f"acme/prod/_catalog/iceberg_pointers/{UUID}",
        f"acme/prod/_catalog/events/2025-13-01/iceberg/pending/{HASH}.json",
        f"acme/prod/_catalog/events/2025-01-01/iceberg/maybe/{HASH}.json",
        f"acme/prod/_catalog/events/2025-01-01/iceberg/pending/{HASH[:8]}.json",
        f"acme/prod/_catalog/ledger/other/2025-01-01/{ULID}.jsonl",
        f"acme/prod/data/{UUID}/data/a.parquet",
        f"acme/prod/data/-{UUID}/data/a.parquet",
        f"acme/prod/data/Orders-{UUID}/data/a.parquet",
        f"acme/prod/data/orders-{UUID}/Data/a.parquet",
        f"acme/prod/data/orders-{UUID}/data/a..parquet",
        f"acme/prod/data/orders-{UUID}/data/.hidden",
        f"acme/prod/data/orders-{UUID}/data/größe.parquet",
        f"acme/prod/data/orders-{UUID}/data/sub/a.parquet",
        f"acme/prod/views/orders-{UUID}/data/a.parquet",
        "x" * 2000,
        "acme/prod/_catalog/audit/\ud800.head.json",
    ],
)
def test_a_name_that_arco_did_not_make_is_refused_with_a_reason(name):
    with pytest.raises(InvalidInput) as caught:
        keys.parse(name)
    assert caught.value.message
    assert caught.value.hint != InvalidInput.default_hint
    assert len(caught.value.one_line()) < 500


@pinned
def test_hazard_18_a_name_with_a_traversal_put_into_it_is_refused(key, tail):
    segments = str(key).split("/")
    for place in range(len(segments) + 1):
        for wedge in ("..", ".", "", ".arco", "a\\b", "\0", "%2e%2e"):
            with pytest.raises(InvalidInput):
                keys.parse("/".join([*segments[:place], wedge, *segments[place:]]))


@pytest.mark.parametrize("kind", keys.KINDS, ids=lambda kind: kind.__name__)
def test_hazard_18_no_field_of_a_key_can_hold_a_traversal(kind):
    hints = get_type_hints(kind)
    for field in fields(kind):
        wanted = hints[field.name]
        if not issubclass(wanted, Identifier):
            assert wanted is int or wanted is Scope or set(wanted) <= {*Head, *Domain, *Phase}
            continue
        for hostile in TRAVERSALS:
            with pytest.raises(InvalidInput):
                wanted(hostile)


@pytest.mark.parametrize("hostile", TRAVERSALS)
def test_hazard_18_another_tenants_prefix_cannot_be_spelled(hostile):
    with pytest.raises(InvalidInput):
        Scope.of(hostile, "prod")
    with pytest.raises(InvalidInput):
        Scope.of("acme", hostile)


@pytest.mark.parametrize("hostile", ["..", ".", "", "../..", "a//b", "/a", "a/", "a\\b", "a\0", "a\n", "\ud800", "x" * 256])
def test_hazard_18_a_folder_for_listing_cannot_leave_its_scope(hostile):
    with pytest.raises(InvalidInput):
        keys.prefix_of(SCOPE, hostile)
    with pytest.raises(InvalidInput):
        keys.prefix_of(SCOPE, "data", hostile)


def test_hazard_18_the_prefix_of_a_scope_is_no_prefix_of_its_neighbours():
    assert not str(keys.HeadKey(Scope.of("acme", "prod2"), Head.ROOT)).startswith(keys.prefix_of(SCOPE))
    assert not str(keys.HeadKey(Scope.of("acme2", "prod"), Head.ROOT)).startswith(keys.prefix_of(SCOPE))


# Folders and slugs


def test_folders_are_made_of_ids_and_end_in_a_slash():
    assert keys.prefix_of(SCOPE) == "acme/prod/"
    assert keys.prefix_of(SCOPE, "_catalog", "runs") == "acme/prod/_catalog/runs/"
    assert keys.table_folder(SCOPE, Slug("orders"), TableUuid(UUID)) == f"acme/prod/data/orders-{UUID}/"
    assert keys.view_folder(SCOPE, Slug("orders"), ViewUuid(UUID)) == f"acme/prod/views/orders-{UUID}/"


def test_everything_of_a_table_lies_in_its_folder():
    folder = keys.table_folder(SCOPE, Slug("orders"), TableUuid(UUID))
    of_table = [key for key, _ in PINNED if isinstance(key, keys.TableFileKey | keys.TableMetadataKey)]
    assert len(of_table) == 2
    assert all(str(key).startswith(folder) for key in of_table)


def test_two_tables_of_one_name_have_two_folders():
    one, other = (keys.table_folder(SCOPE, Slug("orders"), TableUuid(uuid)) for uuid in (UUID, AT_MIDNIGHT))
    assert not one.startswith(other)
    assert not other.startswith(one)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("orders", "orders"),
        ("Daily Orders", "daily_orders"),
        ("daily_orders_2", "daily_orders_2"),
        ("größe", "gr_e"),
        ("таблица", "x"),
        ("表", "x"),
        ("表1", "1"),
        ("😀", "x"),
        ("", "x"),
        ("___", "x"),
        ("..", "x"),
        ("../../etc/passwd", "etc_passwd"),
        ("a/b\\c\0d\ne", "a_b_c_d_e"),
        ("  padded  ", "padded"),
        ("a" * 100, "a" * 48),
        ("a" * 47 + "_b", "a" * 47),
        ("İstanbul", "i_stanbul"),
        ("\u212a", "k"),
        ("\ud800", "x"),
    ],
)  # fmt: skip
def test_every_name_in_every_script_has_a_slug(name, slug):
    made = Slug.from_name(name)
    assert made == slug
    assert type(made) is Slug


@pytest.mark.parametrize("text", ["", "A", "a-b", "a.b", "a/b", "..", "ä", "a" * 49, "a\n", " "])
def test_a_slug_is_plain(text):
    with pytest.raises(InvalidInput):
        Slug(text)


@pytest.mark.parametrize(
    "text", ["2025-00-01", "2025-13-01", "2025-01-00", "2025-01-32", "25-01-01", "2025-1-1", "2025/01/01", "2025-01-01\n"]
)
def test_a_day_looks_like_a_date(text):
    with pytest.raises(InvalidInput):
        Day(text)
