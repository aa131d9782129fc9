"""Where the parts that `build.sh` brings lie."""

import hashlib
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
_MADE_OF = ("package-lock.json", "extension.lock")


def toolbox() -> Path:
    """The folder of packages and extensions that this checkout names."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in _MADE_OF)).hexdigest()[:12]
    found = HERE.parents[1] / ".tools" / f"browser-{digest}"
    assert found.is_dir(), f"{found.name} is not built: make browser"
    return found


def program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is not on the path: make browser says how to get it"
    return found
