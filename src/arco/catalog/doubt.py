"""From where on a silent store is no longer a "no".

An error that says "nothing happened, try again" (503) makes clients clean up. It is true only while nothing has been done, here
or by an earlier attempt of the same request. After that the same silence means that the outcome is not known.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from arco.kernel.errors import OutcomeUnknown, RetryLater


@contextmanager
def doubt() -> Iterator[None]:
    """Around everything that runs when something may have been done already."""
    try:
        yield
    except RetryLater as silence:
        raise OutcomeUnknown(f"this may have been done, and nobody could say: {silence.message}") from silence
