"""The documents say what the code says."""

import re
from pathlib import Path

from arco.kernel import limits
from arco.storage import keys
from arco_sim import invariants

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_invariants_of_the_simulator_are_documented_by_name() -> None:
    named = {value for name, value in vars(invariants).items() if name.isupper()}
    listed = set(re.findall(r"^\| (.+?) \|", (DOCS / "invariants.md").read_text(), re.MULTILINE)) - {"name", "---"}
    assert listed == named


def test_every_object_name_is_documented() -> None:
    page = (DOCS / "formats" / "object-names.md").read_text()
    assert [kind.__name__ for kind in keys.KINDS if f"`{kind.template}`" not in page] == []


def test_every_limit_has_its_unit_in_its_name() -> None:
    units = ("_MAX", "_S", "_FIRST", "_THREADS", "_SHARDS")
    assert [name for name in vars(limits) if name.isupper() and not name.endswith(units)] == []
