"""The unit tests that docs/projects.md shows pass as they stand there, on a real Spark."""

import subprocess
import sys
from pathlib import Path

from fixtures.document_blocks import write_blocks
from fixtures.servo.frames import MARKS

pytestmark = MARKS
PAGE = Path(__file__).resolve().parents[2] / "docs" / "projects.md"


def test_the_unit_tests_of_the_page_pass(tmp_path: Path) -> None:
    write_blocks(PAGE, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
