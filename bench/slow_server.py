"""`arco serve` on a folder that answers as slowly as a bucket: every request takes what the profile of S3 says.

What it costs a server to have hundreds of requests under way is real here, and so is HTTP; only the store's time is made.
"""

from typing import Any

from arco.kernel.clock import SystemClock
from arco.storage.profile import S3, ProfiledStore
from arco.storage.roots import open_root
from arco.surface.cli import serve
from arco.surface.cli.main import run


def _slow(*given: Any) -> ProfiledStore:
    return ProfiledStore(open_root(*given, sync=False), S3, SystemClock())


serve.open_root = _slow  # type: ignore[assignment]

if __name__ == "__main__":
    run()
