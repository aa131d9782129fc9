"""A stored lake is whole in the eyes of every room; and damage to one object of it is found, and named by that object."""

import pytest

from tests.compat.opened_lake import Lake
from tests.compat.verified_lake import (
    Damage,
    cut_short,
    damaged,
    looked_over,
    of_another_version,
    one_bit_flipped,
)


def test_a_stored_lake_is_whole(lake: Lake) -> None:
    report = looked_over(lake)
    assert report.findings == []
    assert report.notes == []
    assert report.counts["fold_manifests"] > 0
    assert report.counts["fold_files"] > 0
    assert report.counts["consumed_lists"] > 0
    assert report.counts["segments"] > 0
    assert report.counts["archived_segments"] > 0
    assert report.counts["unknown"] == 0


@pytest.mark.parametrize("damage", [cut_short, one_bit_flipped])
@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("manifests/assets/", "fold_manifest_unreadable"),
        ("manifests/root/", "fold_manifest_unreadable"),
        ("manifests/execution/", "fold_manifest_unreadable"),
        ("state/quality/", "fold_file_altered"),
        ("state/search/", "fold_file_altered"),
        ("consumed/search/", "consumed_list_unreadable"),
        ("dead_letters/", "dead_letter_unreadable"),
        ("ledger/execution/", "segment_unreadable"),
        ("archive/quality/", "segment_unreadable"),
    ],
)
def test_damage_is_found_at_exactly_the_object_that_has_it(lake: Lake, part: str, code: str, damage: Damage) -> None:
    name = damaged(lake, part, damage)
    assert [(one.code, one.subject) for one in looked_over(lake).findings] == [(code, name)]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("manifests/root.manifest.json", "fold_head_unreadable"),
        ("manifests/lineage.manifest.json", "fold_head_unreadable"),
        ("dead_letters/", "dead_letter_unreadable"),
        ("hints/", "hint_unreadable"),
        ("ledger/lineage/", "segment_unreadable"),
        ("archive/quality/", "segment_unreadable"),
    ],
)
def test_a_version_that_nobody_knows_is_found_at_its_object(lake: Lake, part: str, code: str) -> None:
    name = damaged(lake, part, of_another_version)
    assert [(one.code, one.subject) for one in looked_over(lake).findings] == [(code, name)]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("state/search/", "fold_file_missing"),
        ("consumed/assets/", "consumed_list_missing"),
        ("manifests/assets/", "fold_manifest_missing"),
    ],
)
def test_what_is_missing_is_named(lake: Lake, part: str, code: str) -> None:
    path = lake.one(part)
    path.unlink()
    name = path.relative_to(lake.folder).as_posix()
    assert [(one.code, one.subject) for one in looked_over(lake).findings] == [(code, name)]


def test_what_no_kind_explains_is_told_and_is_no_damage(lake: Lake) -> None:
    stray = lake.folder / "default/default/_catalog/state/notes.txt"
    stray.write_text("mine")
    report = looked_over(lake)
    assert report.findings == []
    assert report.counts["unknown"] == 1
    assert report.notes == ["unknown: default/default/_catalog/state/notes.txt is no object of Arco"]
