# SPDX-License-Identifier: Apache-2.0
"""Iceberg's REST Compatibility Kit against an `arco serve` on an empty folder.

    python -m tests.conformance.rck
    python -m tests.conformance.rck --only testUUIDValidation

Exit code 0: all passed, 1: some failed, 2: the kit could not run.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

POM = Path(__file__).with_name("pom.xml")
CLASSES = "RESTCompatibilityKit*Tests"
JAVA_VERSIONS = range(17, 24)  # run on 17; Java 24 took away a security call that Hadoop makes, so no newer one
# The kit asks for locations in /tmp by name, and for some in its own temporary folder, which therefore is there as well.
TMP = Path("/tmp")
TMP_FOLDERS = ("ns", "newdb")
PARTS_MAX = 4  # of a message that is one line only together
PART_LENGTH_MAX = 160
LOG_LINES_MAX = 20
STOP_TIMEOUT_S = 30

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class CannotRun(Exception):
    """The kit gave no verdict; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Case:
    class_name: str
    name: str
    outcome: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.class_name} {self.name}: {self.message}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="arco-rck-", dir=TMP))
    litter = [TMP / name for name in TMP_FOLDERS if not (TMP / name).exists()]
    try:
        _require_tools()
        with nullcontext(options.uri) if options.uri else arco_server(work) as uri:
            cases = run_kit(work, _properties(options, uri))
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 2
    else:
        return _report(cases, server_errors(work), options.list_failures)
    finally:
        for folder in litter if options.keep else [work, *litter]:
            shutil.rmtree(folder, ignore_errors=True)
        if options.keep:
            print(f"logs, reports and the lake are in {work}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.rck", description="Iceberg's REST Compatibility Kit")
    parser.add_argument("--only", metavar="TEST", help="one method, or CLASS#METHOD; * stands for anything")
    parser.add_argument("--uri", help="a running catalog with nothing in it, instead of one of our own")
    parser.add_argument("--warehouse", default="default/default", help="TENANT/WORKSPACE (default: %(default)s)")
    parser.add_argument("--names-with-dot", action="store_true", help="also the tests of names that hold a dot")
    parser.add_argument("--list-failures", metavar="FILE", type=Path, help="write the failed tests there, a line each")
    parser.add_argument("--keep", action="store_true", help="keep the logs, the reports and the lake, and say where")
    return parser


def _report(cases: list[Case], errors: list[str], list_failures: Path | None) -> int:
    lines = [str(case) for case in cases if case.outcome == FAILED]
    for line in lines:
        print(line)
    if list_failures is not None:
        list_failures.write_text("".join(f"{line}\n" for line in lines))
    for error in errors:
        print(f"server error: {error}", file=sys.stderr)
    counts = [f"{which} {sum(case.outcome == which for case in cases)}" for which in (PASSED, FAILED, SKIPPED)]
    print(", ".join(counts))
    return 1 if lines else 0


def _require_tools() -> None:
    remedy = "install OpenJDK 17 and Maven 3.8 (Debian: apt install openjdk-17-jdk-headless maven)"
    if shutil.which("mvn") is None:
        raise CannotRun(f"the kit needs Maven, and there is no mvn on the PATH: {remedy}")
    # Maven knows which Java it will use: JAVA_HOME may say another than the PATH.
    said = subprocess.run(["mvn", "-B", "-version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Java version: (\d+)", said)
    if found is None:
        raise CannotRun(f"the kit needs Java 17, and Maven finds no Java: {remedy}")
    if int(found[1]) not in JAVA_VERSIONS:
        raise CannotRun(f"the kit needs Java 17, and Maven uses Java {found[1]}: {remedy}, or point JAVA_HOME to it")


@contextmanager
def arco_server(work: Path) -> Iterator[str]:
    """The address of a new server on an empty folder, for the length of a block."""
    serve = [str(Path(sys.executable).with_name("arco")), "serve"]
    root = work / "lake"
    root.mkdir()
    command = [*serve, "--root", str(root), "--port", "0", "--log", "text"]
    described = subprocess.run([*serve, "--help"], capture_output=True, text=True, check=True).stdout
    if "--allow-location" in described:
        command += ["--allow-location", f"file:{TMP}"]
    with (work / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if " at http://" not in line:
            raise CannotRun(f"the server did not start: {line}{_tail(work / 'server.log')}")
        yield line.rpartition(" at ")[2].strip()
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stdout is not None:
        server.stdout.close()


def _properties(options: argparse.Namespace, uri: str) -> dict[str, str]:
    only: str = options.only or CLASSES
    return {
        "test": only if "#" in only or only == CLASSES else f"{CLASSES}#{only}",
        "uri": uri,
        "warehouse": options.warehouse,
        "rck.local": "false",
        "rck.requires-namespace-create": "true",
        "rck.supports-names-with-dot": str(options.names_with_dot).lower(),
    }


def run_kit(work: Path, properties: dict[str, str]) -> list[Case]:
    """All cases, by name. Maven's own output goes to a log in the work folder."""
    output = work / "kit"
    output.mkdir()
    given = [f"-D{name}={value}" for name, value in {**properties, "kit.output": str(output)}.items()]
    command = ["mvn", "-B", "-ntp", "-f", str(POM), "surefire:test", *given]
    with (work / "maven.log").open("w") as log:
        maven = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    cases = read_reports(output / "surefire-reports")
    said = (work / "maven.log").read_text(errors="replace")
    # Failed tests are a success to Maven here, and so is a tester that it stopped half-way.
    if maven.returncode or not cases or "There was a timeout in the fork" in said:
        errors = [line for line in said.splitlines() if line.startswith("[ERROR] ") and "\tat " not in line]
        raise CannotRun("\n".join(["the kit did not run to its end; Maven says:", *errors[:LOG_LINES_MAX]]))
    return cases


def read_reports(folder: Path) -> list[Case]:
    """The cases of surefire's XML reports, by name."""
    cases = [_case(element) for report in folder.glob("TEST-*.xml") for element in ET.parse(report).iter("testcase")]
    return sorted(cases, key=lambda case: (case.name, case.class_name))


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


def server_errors(work: Path) -> list[str]:
    """What the server could not explain itself: each kind of exception in its log, with the number of times."""
    log = work / "server.log"
    if not log.exists():
        return []
    counts: dict[str, int] = {}
    in_traceback = False
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("Traceback (most recent call last)"):
            in_traceback = True
        elif in_traceback and line and not line.startswith(" "):
            counts[line] = counts.get(line, 0) + 1
            in_traceback = False
    return [f"{line} ({count} times)" for line, count in sorted(counts.items())]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES_MAX:])


if __name__ == "__main__":
    sys.exit(main())
