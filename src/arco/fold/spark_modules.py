"""A project's own modules in one file, for executors that do not see the project's folder.

A function that rows are handed to travels by its name: whoever runs it imports the module that it is in. On this machine that is
a folder of the path; elsewhere it is this file, which Spark brings along. Only modules go into it, no data.
"""

import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from arco.kernel.errors import TooLarge
from arco.kernel.limits import SPARK_MODULES_MAX

_NAME = "arco-project.zip"
_LEFT_OUT = {"node_modules", "__pycache__", "site-packages"}


def packed(folders: Iterable[Path], without: str = "") -> Path | None:
    """The modules of some folders, in a new file; None if there are none. `without` is a folder that is left out: the lake."""
    found = {name: file for folder in folders for name, file in _modules(folder, without)}
    if not found:
        return None
    place = Path(tempfile.mkdtemp(prefix="arco-modules-")) / _NAME
    parents = {str(parent) for name in found for parent in PurePosixPath(name).parents if parent.name}
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in sorted(parents):
            archive.mkdir(folder)  # a folder without __init__.py is a package only if it is in the list itself
        for name, file in sorted(found.items()):
            archive.write(file, name)
    return place


def _modules(folder: Path, without: str) -> Iterator[tuple[str, Path]]:
    count = 0
    for here, below, files in os.walk(folder):
        # Other installations of Python, hidden folders and the lake's files are nobody's modules.
        below[:] = [one for one in below if _is_walked(Path(here, one), without)]
        for name in files:
            if name.endswith(".py"):
                count += 1
                if count > SPARK_MODULES_MAX:
                    raise TooLarge(
                        f"{folder} holds more than {SPARK_MODULES_MAX} modules",
                        hint="give the project a folder of its own",
                    )
                file = Path(here, name)
                yield file.relative_to(folder).as_posix(), file


def _is_walked(folder: Path, without: str) -> bool:
    if folder.name.startswith(".") or folder.name in _LEFT_OUT or str(folder) == without:
        return False
    return not (folder / "pyvenv.cfg").is_file() and not (folder / "_catalog").is_dir()
