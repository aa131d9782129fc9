# SPDX-License-Identifier: Apache-2.0
"""Iceberg's REST Compatibility Kit against `arco serve`, as published and beyond.

    python -m tests.conformance.rck                             # every run, each compared with expected/RUN.txt
    python -m tests.conformance.rck folder dots                 # some of them
    python -m tests.conformance.rck --only testUUIDValidation   # one test, on a folder

Exit code 0: all is as expected (with --only or --uri: all passed), 1: it is not, 2: the kit could not run.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path

from tests.conformance import expectations
from tests.conformance.kit import EVERYTHING, FAILED, CannotRun, Selection, Tester, count, require_tools
from tests.conformance.server import on_folder, on_s3, server_errors

# The kit asks for locations in /tmp by name, and for some in its own temporary folder, which therefore is there as well.
TMP = Path("/tmp")
TMP_FOLDERS = ("ns", "newdb")
WAREHOUSES = ("kit/tables", "kit/views")
DOTS = {"rck.supports-names-with-dot": "true"}
MORE = {
    "MoreCatalogTests": (
        *("testListNestedNamespaces", "testDropNamespaceWithNestedNamespace"),
        *("testNamespaceWithSlash", "testTableNameWithSlash", "createTableInUniqueLocation"),
        *("listNamespacesWithEmptyNamespace", "createAndDropEmptyNamespace", "namespacePropertiesOnEmptyNamespace"),
        "listTablesInEmptyNamespace",
    ),
    "MoreViewTests": ("listViewsInEmptyNamespace",),
}


def _failing_on_s3() -> Selection:
    """The tests that want locations in /tmp. Their parameters are no part of what Maven calls them by."""
    failed = [words for words, outcome in expectations.read("s3").others.items() if outcome == FAILED]
    return {kind: [name.partition("(")[0] for found, name in failed if found == kind] for kind in EVERYTHING}


@dataclass(frozen=True, slots=True)
class Run:
    """The kit against a new server."""

    says: str
    server: Callable[[Path, Sequence[str]], AbstractContextManager[str]] = on_folder
    allowed: tuple[str, ...] = (f"file:{TMP}",)
    tester: Tester = field(default_factory=Tester)


RUNS: Mapping[str, Run] = {
    "folder": Run("the kit on a folder"),
    "dots": Run("the kit on a folder, with names that hold a dot", tester=Tester(properties=DOTS)),
    "more": Run("the tests that no property of the kit turns on, on a folder", tester=Tester(MORE)),
    "s3": Run("the kit on S3", on_s3, allowed=(), tester=Tester(properties=DOTS, profiles=("s3",))),
    "s3-files": Run(
        "what fails on S3, with a server that may place tables in /tmp as well",
        on_s3,
        tester=Tester(_failing_on_s3(), profiles=("s3",)),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    names = options.runs or list(RUNS)
    try:
        if options.only or options.uri:
            return _one(options)
        require_tools(compiler=any(RUNS[name].tester.compiled for name in names))
        return max([_compare(name, keep=options.keep) for name in names])
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.rck", description="Iceberg's REST Compatibility Kit")
    parser.add_argument("runs", nargs="*", type=_run_name, metavar="RUN", help=f"of {', '.join(RUNS)} (default: all)")
    parser.add_argument("--only", metavar="TEST", help="one method, or CLASS#METHOD; * stands for anything")
    parser.add_argument("--uri", help="a running catalog with nothing in it, instead of one of our own")
    parser.add_argument("--warehouse", default="default/default", help="TENANT/WORKSPACE (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the logs, the reports and the lake, and say where")
    return parser


def _run_name(given: str) -> str:
    if given not in RUNS:
        raise argparse.ArgumentTypeError(f"{given!r} is none of {', '.join(RUNS)}")
    return given


def _compare(name: str, *, keep: bool) -> int:
    """One of our runs, held to what is known of it."""
    run = RUNS[name]
    with _work_folder(keep=keep) as work:
        with run.server(work, run.allowed) as uri:
            cases = run.tester.run(work, uri, WAREHOUSES)
        lines = [*expectations.surprises(cases, expectations.read(name)), *_server_errors(work)]
    for line in lines:
        print(line)
    print(f"{name}: {run.says}: {count(cases)}, {'NOT as expected' if lines else 'as expected'}", flush=True)
    return 1 if lines else 0


def _one(options: argparse.Namespace) -> int:
    """What was asked for on the command line, with no expectation but that it passes."""
    run = RUNS[options.runs[0] if options.runs else "folder"]
    class_name, _, method = (options.only or "*").rpartition("#")
    selection = {class_name: (method,)} if class_name else dict.fromkeys(EVERYTHING, (method,))
    tester = replace(run.tester, selection=selection, properties=DOTS)
    require_tools(compiler=tester.compiled)
    with _work_folder(keep=options.keep) as work:
        with nullcontext(options.uri) if options.uri else run.server(work, run.allowed) as uri:
            cases = tester.run(work, uri, repeat(options.warehouse) if options.uri else WAREHOUSES)
        errors = _server_errors(work)
    lines = [str(case) for case in cases if case.outcome == FAILED] + errors
    for line in lines:
        print(line)
    print(count(cases))
    return 1 if lines else 0


def _server_errors(work: Path) -> list[str]:
    return [f"server error: {error}" for error in server_errors(work)]


@contextmanager
def _work_folder(*, keep: bool) -> Iterator[Path]:
    """A folder for one run, and nothing of it left behind, also not what the kit puts into /tmp by name."""
    work = Path(tempfile.mkdtemp(prefix="arco-rck-", dir=TMP))
    litter = [TMP / name for name in TMP_FOLDERS if not (TMP / name).exists()]
    try:
        yield work
    finally:
        for folder in litter if keep else [work, *litter]:
            shutil.rmtree(folder, ignore_errors=True)
        if keep:
            print(f"logs, reports and the lake are in {work}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
