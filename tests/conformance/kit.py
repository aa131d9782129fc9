# SPDX-License-Identifier: Apache-2.0
"""Runs Iceberg's REST Compatibility Kit with Maven, and reads what came of it.

Nothing here starts a server or knows what Arco can do.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

POM = Path(__file__).with_name("pom.xml")
TABLES = "RESTCompatibilityKitCatalogTests"
VIEWS = "RESTCompatibilityKitViewCatalogTests"
JAVA_VERSIONS = range(17, 24)  # run on 17; Java 24 took away a security call that Hadoop makes, so no newer one
PARTS_MAX = 4  # of a message that is one line only together
PART_LENGTH_MAX = 160
LOG_LINES_MAX = 20
SETTINGS = {"rck.local": "false", "rck.requires-namespace-create": "true"}

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

Selection = Mapping[str, Sequence[str]]
"""The methods to run of each class; * stands for anything."""
EVERYTHING: Selection = {TABLES: ("*",), VIEWS: ("*",)}


class CannotRun(Exception):
    """There is no verdict; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Case:
    class_name: str
    name: str
    outcome: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.class_name} {self.name}: {self.message}"


def require_tools(*, compiler: bool) -> None:
    remedy = "install OpenJDK 17 and Maven 3.8 (Debian: apt-get install openjdk-17-jdk-headless maven)"
    if shutil.which("mvn") is None:
        raise CannotRun(f"the kit needs Maven, and there is no mvn on the PATH: {remedy}")
    # Maven knows which Java it will use: JAVA_HOME may say another than the PATH.
    said = subprocess.run(["mvn", "-B", "-version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Java version: (\d+).*?(?:runtime: (.*))?$", said, re.MULTILINE)
    if found is None:
        raise CannotRun(f"the kit needs Java 17, and Maven finds no Java: {remedy}")
    if int(found[1]) not in JAVA_VERSIONS:
        raise CannotRun(f"the kit needs Java 17, and Maven uses Java {found[1]}: {remedy}, or point JAVA_HOME to it")
    if compiler and found[2] and not (Path(found[2]) / "bin" / "javac").exists():
        raise CannotRun(f"the tests beside the kit are compiled, and {found[2]} has no compiler: {remedy}")


@dataclass(frozen=True, slots=True)
class Tester:
    """One way to start Maven."""

    selection: Selection = field(default_factory=lambda: EVERYTHING)
    properties: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()

    @property
    def compiled(self) -> bool:
        """Whether it has tests that are not in the kit's jar."""
        return not set(self.selection) <= set(EVERYTHING)

    def run(self, work: Path, uri: str, warehouses: Iterable[str]) -> list[Case]:
        """All cases, by name. Each class starts where nothing is: it does not clean up after its last test."""
        cases: list[Case] = []
        for (class_name, methods), warehouse in zip(self.selection.items(), warehouses, strict=False):
            folder = work / class_name
            folder.mkdir()
            cases += self._run(folder, f"{class_name}#{'+'.join(methods)}", {"uri": uri, "warehouse": warehouse})
        if not cases:
            raise CannotRun("no test of the kit has that name")
        return sorted(cases, key=lambda case: (case.name, case.class_name))

    def _run(self, folder: Path, tests: str, where: Mapping[str, str]) -> list[Case]:
        given = {"test": tests, "kit.output": str(folder), **SETTINGS, **where, **self.properties}
        command = ["mvn", "-B", "-ntp", "-f", str(POM), *(f"-P{profile}" for profile in self.profiles)]
        command += [*(["compiler:testCompile"] if self.compiled else []), "surefire:test"]
        command += [f"-D{name}={value}" for name, value in given.items()]
        log = folder / "maven.log"
        with log.open("w") as output:
            maven = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False)
        cases = read_reports(folder / "surefire-reports")
        said = log.read_text(errors="replace")
        # Failed tests are a success to Maven here, and so is a tester that it stopped half-way.
        if maven.returncode or "There was a timeout in the fork" in said:
            errors = [line for line in said.splitlines() if line.startswith("[ERROR] ") and "\tat " not in line]
            raise CannotRun("\n".join(["the kit did not run to its end; Maven says:", *errors[:LOG_LINES_MAX]]))
        return cases


def read_reports(folder: Path) -> list[Case]:
    """The cases of surefire's XML reports."""
    return [_case(element) for report in folder.glob("TEST-*.xml") for element in ET.parse(report).iter("testcase")]


def count(cases: Sequence[Case]) -> str:
    return ", ".join(f"{which} {sum(case.outcome == which for case in cases)}" for which in (PASSED, FAILED, SKIPPED))


def _case(element: ET.Element) -> Case:
    class_name = element.get("classname", "").rpartition(".")[2]
    name = element.get("name") or "(set-up)"
    if element.find("skipped") is not None:
        return Case(class_name, name, SKIPPED)
    for kind in ("failure", "error"):
        found = element.find(kind)
        if found is not None:
            return Case(class_name, name, FAILED, _one_line(found.get("message") or found.text or ""))
    return Case(class_name, name, PASSED)


def _one_line(message: str) -> str:
    """The first line; a first line that says nothing alone, as assertions write them, takes the next ones along."""
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith("\tat ")]
    if not lines:
        return "no message"
    is_alone = not re.search(r":$|^expected:|^\[.*\]$", lines[0])
    return " ".join(_cut(line, PART_LENGTH_MAX) for line in (lines[:1] if is_alone else lines[:PARTS_MAX]))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
