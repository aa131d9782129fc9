"""A stored lake is whole in the eyes of every room; and damage to one object of it is found, and named by that object."""

import shutil
from pathlib import Path

import pytest

from tests.compat.make import HERE
from tests.compat.opened_lake import Lake
from tests.compat.verified_lake import (
    Damage,
    cut_short,
    damaged,
    found_in,
    looked_over,
    no_text,
    object_of,
    of_another_version,
    one_bit_flipped,
)

ROOTS = ("v1", "transactions/v1", "told/v1", "operations/v1", "crew/v1", "outside/v1")
"""Roots of other stories, as older code left them."""


def test_a_stored_lake_is_whole(lake: Lake) -> None:
    report = looked_over(lake.folder)
    assert report.findings == []
    assert report.notes == []
    assert report.counts["fold_manifests"] > 0
    assert report.counts["fold_files"] > 0
    assert report.counts["consumed_lists"] > 0
    assert report.counts["segments"] > 0
    assert report.counts["archived_segments"] > 0
    assert report.counts["runs"] == 3
    assert report.counts["run_entries"] > 0
    assert report.counts["deployments"] > 0
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
        ("plan.json", "run_plan_unreadable"),
        ("planning/", "planning_facts_unreadable"),
    ],
)
def test_damage_is_found_at_exactly_the_object_that_has_it(lake: Lake, part: str, code: str, damage: Damage) -> None:
    name = damaged(lake.folder, part, damage)
    assert found_in(lake.folder) == [(code, name)]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("manifests/root.manifest.json", "fold_head_unreadable"),
        ("manifests/lineage.manifest.json", "fold_head_unreadable"),
        ("dead_letters/", "dead_letter_unreadable"),
        ("hints/", "hint_unreadable"),
        ("ledger/lineage/", "segment_unreadable"),
        ("archive/quality/", "segment_unreadable"),
        ("log/00000002.json", "run_entry_unreadable"),
        ("closed.json", "run_closed_unreadable"),
        ("claims/", "run_claim_unreadable"),
        ("run_requests/", "run_request_unreadable"),
        ("deployments/heads/", "deployment_unreadable"),
        ("deployments/01", "deployment_unreadable"),
        ("dynamic_partitions/", "dynamic_values_unreadable"),
    ],
)
def test_a_version_that_nobody_knows_is_found_at_its_object(lake: Lake, part: str, code: str) -> None:
    name = damaged(lake.folder, part, of_another_version)
    assert found_in(lake.folder) == [(code, name)]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("state/search/", "fold_file_missing"),
        ("consumed/assets/", "consumed_list_missing"),
        ("manifests/assets/", "fold_manifest_missing"),
        ("log/00000002.json", "run_entry_missing"),
        ("plan.json", "run_plan_missing"),
        ("deployments/01", "deployment_missing"),
    ],
)
def test_what_is_missing_is_named(lake: Lake, part: str, code: str) -> None:
    path = object_of(lake.folder, part)
    path.unlink()
    name = path.relative_to(lake.folder).as_posix()
    assert found_in(lake.folder) == [(code, name)]


def test_what_no_kind_explains_is_told_and_is_no_damage(lake: Lake) -> None:
    stray = lake.folder / "default/default/_catalog/state/notes.txt"
    stray.write_text("mine")
    report = looked_over(lake.folder)
    assert report.findings == []
    assert report.counts["unknown"] == 1
    assert report.notes == ["unknown: default/default/_catalog/state/notes.txt is no object of Arco"]


# The other stories


def copied(story: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / story, tmp_path / "copy"))


@pytest.mark.parametrize("story", ROOTS)
def test_what_other_stories_left_is_whole(story: str, tmp_path: Path) -> None:
    report = looked_over(copied(story, tmp_path))
    assert report.findings == []
    assert report.notes == []


@pytest.mark.parametrize("damage", [cut_short, no_text, of_another_version])
@pytest.mark.parametrize(
    ("story", "part", "code"),
    [
        ("transactions/v1", "iceberg_transactions/", "transaction_unreadable"),
        ("v1", "iceberg_idempotency/", "marker_unreadable"),
        ("v1", "iceberg_staged/", "intent_unreadable"),
        ("v1", "core/locks/", "lease_unreadable"),
        ("told/v1", "core/told.json", "told_unreadable"),
        ("outside/v1", "_catalog/workspace.json", "workspace_unreadable"),
        ("operations/v1", "schedules/", "schedule_unreadable"),
        ("operations/v1", "quarantine/", "decision_unreadable"),
        ("crew/v1", "open_runs.json", "open_runs_unreadable"),
        ("crew/v1", "pools/", "pool_unreadable"),
        ("outside/v1", "asked_runs/open/", "asked_run_unreadable"),
        ("outside/v1", "asked_runs/decided/", "asked_run_unreadable"),
        ("outside/v1", "asked_runs/troubled/", "asked_run_unreadable"),
    ],
)
def test_damage_of_other_stories_is_found_too(story: str, part: str, code: str, damage: Damage, tmp_path: Path) -> None:
    folder = copied(story, tmp_path)
    name = damaged(folder, part, damage)
    assert found_in(folder) == [(code, name)]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("iceberg_transactions/", "transaction_unreadable"),
        ("iceberg_idempotency/", "marker_unreadable"),
        ("iceberg_staged/", "intent_unreadable"),
    ],
)
def test_an_object_under_the_name_of_another_is_found(part: str, code: str, tmp_path: Path) -> None:
    folder = copied("transactions/v1" if "transactions" in part else "v1", tmp_path)
    path = object_of(folder, part)
    stem = path.stem
    other = path.with_name(f"{stem[:-1]}{'1' if stem[-1] != '1' else '2'}{path.suffix}")
    path.rename(other)
    assert found_in(folder) == [(code, other.relative_to(folder).as_posix())]


@pytest.mark.parametrize("damage", [cut_short, no_text])
def test_a_log_that_is_damaged_in_one_entry_is_not_blamed_in_those_behind_it(lake: Lake, damage: Damage) -> None:
    name = damaged(lake.folder, "log/00000003.json", damage)
    assert found_in(lake.folder) == [("run_entry_unreadable", name)]


def test_what_is_left_of_a_closed_run_is_not_missed(lake: Lake) -> None:
    closed = object_of(lake.folder, "closed.json")
    (closed.parent / "plan.json").unlink()
    (closed.parent / "log/00000001.json").unlink()
    assert found_in(lake.folder) == []
