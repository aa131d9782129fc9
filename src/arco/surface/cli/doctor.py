"""`arco doctor`: the store's self-test, for people."""

from rich.console import Console

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.roots import open_root, parse_root
from arco.storage.selftest import SelfTest
from arco.surface.cli.settings import load_settings


async def examine(root: str | None, options: list[str]) -> bool:
    """Print every finding; True if all are right."""
    console = Console(highlight=False, soft_wrap=True)
    settings = load_settings(root, options)
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(settings.root, settings.options, clock, entropy)
    try:
        console.print(f"Testing {parse_root(settings.root)}", markup=False)
        findings = await SelfTest(store, clock, entropy).run()
    finally:
        await store.close()
    for finding in findings:
        mark = "ok  " if finding.ok else "FAIL"
        console.print(f"  {mark}  {finding.question}{': ' if finding.detail else ''}{finding.detail}", markup=False)
    wrong = sum(not finding.ok for finding in findings)
    if wrong:
        console.print(
            f"This store cannot be trusted with commits: {wrong} of {len(findings)} answers are wrong.", markup=False
        )
    else:
        console.print("This store can be trusted with commits.", markup=False)
    return not wrong
