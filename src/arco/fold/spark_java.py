"""Which Java Spark would run on, found out without starting one.

An installation says its version in a file; only one that has none is asked. What must never enter: anything that needs PySpark.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from arco.kernel.errors import Unavailable
from arco.kernel.ids import clip

JAVA_MIN = 17
JAVA_HINT = "install a JRE of version 17 or newer, for example openjdk-17-jre-headless, or set JAVA_HOME"
_RELEASE = re.compile(r'^JAVA_VERSION="?(\d+)(?:\.(\d+))?', re.MULTILINE)
_SAID = re.compile(r'version "(\d+)(?:\.(\d+))?')


def need_java(environment: Mapping[str, str]) -> None:
    """That there is a Java which Spark runs on, looked for as Spark does: JAVA_HOME, then the path."""
    home = environment.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else _on_path(environment)
    if java is None:
        raise Unavailable("Java is missing, and Spark runs on it", hint=JAVA_HINT)
    if not java.is_file():
        raise Unavailable(f"JAVA_HOME is {clip(str(home))}, and there is no bin/java in it", hint=JAVA_HINT)
    version = _version(java)
    if version is not None and version < JAVA_MIN:
        raise Unavailable(f"Java {version} at {clip(str(java))} is too old for Spark", hint=JAVA_HINT)


def _on_path(environment: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=environment.get("PATH"))
    return None if found is None else Path(found)


def _version(java: Path) -> int | None:
    """Its number; None if it does not tell, and then Spark finds out."""
    release = java.resolve().parent.parent / "release"
    try:
        if release.is_file():
            found = _RELEASE.search(release.read_text(errors="replace"))
        else:
            said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - Spark's own Java
            found = _SAID.search(said.stderr)
    except OSError:
        return None
    if found is None:
        return None
    # Up to 8 it was called 1.8.
    return int(found[2] or 0) if found[1] == "1" else int(found[1])
