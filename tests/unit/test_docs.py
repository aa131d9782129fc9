"""The documents say what the code says."""

import re
from pathlib import Path

from arco.catalog import findings
from arco.kernel import limits
from arco.storage import keys
from arco.surface.cli import names
from arco.surface.http import platform
from arco_sim import invariants

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_invariants_of_the_simulator_are_documented_by_name() -> None:
    named = {value for name, value in vars(invariants).items() if name.isupper()}
    listed = set(re.findall(r"^\| (.+?) \|", (DOCS / "invariants.md").read_text(), re.MULTILINE)) - {"name", "---"}
    assert listed == named


def test_every_object_name_is_documented() -> None:
    page = (DOCS / "formats" / "object-names.md").read_text()
    assert [kind.__name__ for kind in keys.KINDS if f"`{kind.template}`" not in page] == []


def test_every_command_is_documented() -> None:
    page = (DOCS / "cli.md").read_text()
    assert [one.__name__ for one in names.COMMANDS if f"`arco {one.__name__}" not in page] == []


def test_every_route_of_the_platform_api_is_documented() -> None:
    page = (DOCS / "api.md").read_text()
    routes = platform.Platform(None).routes()  # type: ignore[arg-type]
    assert [one.template for one in routes if f"`{one.method} {one.template}" not in page] == []


def test_every_finding_of_verify_is_documented() -> None:
    page = (DOCS / "cli.md").read_text()
    sources = (Path(findings.__file__).parent).glob("verify*.py")
    codes = {code for file in sources for code in re.findall(r'(?<!count)[(]\s*"([a-z]+_[a-z_]+)",', file.read_text())}
    assert len(codes) >= 30
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_limit_has_its_unit_in_its_name() -> None:
    units = ("_MAX", "_S", "_FIRST", "_THREADS", "_SHARDS")
    assert [name for name in vars(limits) if name.isupper() and not name.endswith(units)] == []
