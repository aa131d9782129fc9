"""Named places in protocol code where a process may die.

Production code calls `reach("commit.swung")` between two steps of a protocol. It costs one function call and does nothing,
unless a simulation or a kill test installed a hook. The names are the action names of the specifications in `specs/`, so a
counterexample of a model reads like a stack of places in the code.
"""

from collections.abc import Callable

Hook = Callable[[str], None]


def _nothing(_point: str) -> None:
    return


_hook: Hook = _nothing


def reach(point: str) -> None:
    """Say that execution got here."""
    _hook(point)


def install(hook: Hook | None) -> None:
    """Replace the hook; None restores the one that does nothing."""
    global _hook  # noqa: PLW0603 - one process, one hook: threading it through every signature would hide the protocol
    _hook = hook or _nothing
