"""What Spark's own process is born with, and keeps for as long as it lives: signals that it does not hear.

A process inherits them from the thread that starts it. What must never enter: anything that needs PySpark.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deaf_to_interruptions() -> Iterator[None]:
    """What is started meanwhile does not hear Ctrl-C, which a terminal sends to everything that it runs.

    Between its fork and its exec a child is a copy of this process, with its handlers and with the pipe through which the event
    loop hears of signals: a Ctrl-C in that moment was heard twice here, and the second one leaves at once.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
