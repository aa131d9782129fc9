"""`arco maintain` killed at its steps, then asked for again: the same rows, every one once, whatever the killed one had done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arco.fold.spark_session import Session
from arco.iceberg.metadata import TableMetadata
from arco.servo.execute.maintaining import Maintenance
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake

from .spark_local import opened
from .test_maintain import everything, maintenance, surveyed, table_of

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS

REPOSITORY = Path(__file__).resolve().parents[2]
# Before the swing that counts, and after it. Files are one task and manifests the next, so a place is reached twice.
PLACES = [("run.output_staged", 1), ("commit.swung", 1)]
# For `make kill`: a JVM for each takes its time.
MORE_PLACES = [
    ("run.plan_written", 1),
    ("run.task_claimed", 1),
    ("publish.drafted", 1),
    ("commit.staged", 1),
    ("publish.committed", 1),
    ("run.output_staged", 2),
    ("commit.swung", 2),
    ("run.events_appended", 1),
]
if os.environ.get("EVERY_PLACE"):
    PLACES += MORE_PLACES


@pytest.mark.parametrize(("point", "nth"), PLACES, ids=[f"{point}-{nth}" for point, nth in PLACES])
def test_what_a_killed_maintenance_left_is_finished_and_no_row_is_lost_or_doubled(
    home: Lake, session: Session, tmp_path: Path, point: str, nth: int
) -> None:
    before = table_of(home, session, 6, (("identity", "day"),))
    rows = everything(session, before, home)
    _killed(tmp_path, point, nth)
    assert everything(session, home.load("t"), home) == rows, "as it was, or as it is to be"
    work = maintenance(home)
    _maintain(home, session, work)
    after = home.load("t")
    assert everything(session, after, home) == rows
    assert len(home.paths(after)) == 2, "one file a day, and nothing of the killed one beside it"
    made = _made(after, before)
    assert made in (["files"], ["files", "manifests"]), "each at most once; after the files few manifests are left to merge"
    assert home.run(work.start(surveyed(home, work))) is None, "there is nothing left to do"


def _killed(folder: Path, point: str, nth: int) -> None:
    """Type the command in a process that dies at a place."""
    dying = [sys.executable, "-m", "tests.integration.run_killed", point, str(nth)]
    command = [*dying, "maintain", "db.t", "--root", str(folder / "lake"), "--spark", "local[1]"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -9, f"it was not killed: {done.stdout}{done.stderr}"


def _maintain(home: Lake, session: Session, work: Maintenance) -> None:
    """The same command again, until it has nothing to do: what was half done is gone on with, or begun anew."""
    while True:
        found = surveyed(home, work)
        started = home.run(work.start(found))
        if started is None:
            return
        assert home.run(work.drive(started, found, opened(session))).is_finished


def _made(after: TableMetadata, before: TableMetadata) -> list[str]:
    known = {one["snapshot-id"] for one in before.snapshots}
    new = [one["summary"] for one in after.snapshots if one["snapshot-id"] not in known]
    assert all(one["operation"] == "replace" for one in new)
    return [one["arco.maintenance"] for one in new]
