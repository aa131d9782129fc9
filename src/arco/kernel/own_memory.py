"""A process that keeps its memory and its environment to itself: other processes of the same user cannot read them.

On Linux a process that is not dumpable belongs to root in /proc. Whoever is root with all rights reads it all the same.
"""

import ctypes
import sys

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4


def keep_to_ourselves() -> bool:
    """From now on nobody without root's rights reads this process's memory or environment. False where that cannot be had."""
    if not sys.platform.startswith("linux"):
        return False
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 and prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
