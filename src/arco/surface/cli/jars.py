"""`arco spark jars`: Iceberg's runtime and the S3 connector for the Spark that is installed, fetched once by Maven.

Maven compares what it downloads with the checksums of its repository and refuses what differs; what the versions that Arco is
tested with must be is also written here. Sums of everything that was fetched lie beside it. A file is fetched beside its
place and renamed, so that half a jar never looks like one.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from arco.fold.spark_jars import hadoop_version, iceberg_runtime
from arco.fold.spark_s3 import SDK_VERSION, connector_parts
from arco.kernel.errors import CorruptObject, InvalidInput, Unavailable
from arco.kernel.ids import clip
from arco.surface.cli.printing import counted, print_json, say, say_aside, size

ICEBERG, S3 = "iceberg", "s3"
SUMS = "SHA256SUMS"
_MADE_FOR = ".made-for"
_CONNECTOR = "hadoop-aws-*.jar"
_PINNED = {
    "iceberg-spark-runtime-4.1_2.13-1.12.0.jar": "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
}
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>arco</groupId>
  <artifactId>s3-jars</artifactId>
  <version>1</version>
  <dependencies>
{parts}
  </dependencies>
</project>
"""
_PART = """    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{name}</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion><groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId></exclusion>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>hadoop-common</artifactId></exclusion>
      </exclusions>
    </dependency>"""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar by its Maven name."""

    group: str
    name: str
    version: str

    @classmethod
    def parse(cls, text: str) -> "Artifact":
        parts = text.split(":")
        if len(parts) != 3 or not all(parts) or any("/" in part or part.startswith(".") for part in parts):
            raise InvalidInput(
                f"{clip(text)!r} is no jar's name", hint=f"{ICEBERG}, {S3}, or GROUP:NAME:VERSION as Maven writes it"
            )
        return cls(*parts)

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def fetch(wanted: Iterable[str], folder: Path, *, json: bool) -> None:
    """Bring jars into a folder. What is there already, and whole, stays."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()  # Maven takes what is relative from elsewhere
    new = [file for one in wanted for file in (_connector(place) if one == S3 else _one(_named(one), place))]
    jars = sorted(folder.glob("*.jar"))
    if json:
        print_json({"folder": str(folder), "jars": [one.name for one in jars], "fetched": sorted(new)})
        return
    held = size(sum(one.stat().st_size for one in jars))
    say(f"{counted(len(new), 'jar')} fetched; {counted(len(jars), 'jar')} in {folder} ({held})")


def _named(word: str) -> Artifact:
    return Artifact.parse(iceberg_runtime() if word == ICEBERG else word)


def _one(artifact: Artifact, folder: Path) -> list[str]:
    if _is_whole(folder / artifact.file):
        return []
    say_aside(f"fetching {artifact.file}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching.") as beside:
        _maven(str(artifact), "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={beside}")
        return _placed([Path(beside, artifact.file)], folder)


def _connector(folder: Path) -> list[str]:
    """The S3 connector and all that it needs: 18 MB, without the 600 MB bundle."""
    made_for = f"{hadoop_version()} {SDK_VERSION}"
    stamp = folder / _MADE_FOR
    if stamp.is_file() and stamp.read_text().strip() == made_for and any(folder.glob(_CONNECTOR)):
        return []
    say_aside(f"fetching the S3 connector for Hadoop {hadoop_version()}")
    parts = [Artifact.parse(one) for one in connector_parts()]
    text = "\n".join(_PART.format(group=one.group, name=one.name, version=one.version) for one in parts)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching.") as beside:
        pom, jars = Path(beside, "pom.xml"), Path(beside, "jars")
        pom.write_text(_POM.format(parts=text))
        _maven("the S3 connector", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}",
               "-DincludeScope=runtime")  # fmt: skip
        # Spark brings its own.
        found = _placed([one for one in jars.glob("*.jar") if not one.name.startswith("slf4j-api-")], folder)
    if not any(folder.glob(_CONNECTOR)):
        raise Unavailable(
            "the S3 connector could not be fetched: Maven brought no jar of it", hint="is its repository whole?"
        )
    stamp.write_text(f"{made_for}\n")
    return found


def _maven(what: str, *arguments: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven is missing, which fetches jars", hint="install it, for example with apt-get install maven")
    # Checksums that differ are an error, not a warning.
    said = subprocess.run(  # noqa: S603 - Maven by its path, and names that were taken apart
        [maven, "-q", "-B", "--strict-checksums", *arguments], capture_output=True, text=True, check=False
    )
    if said.returncode:
        lines = [line for line in f"{said.stdout}\n{said.stderr}".splitlines() if line.startswith("[ERROR]")]
        reason = clip(lines[0].removeprefix("[ERROR]").strip() if lines else "Maven says nothing", 300)
        raise Unavailable(f"{what} could not be fetched: {reason}", hint="is there a network, and is it spelled right?")


def _placed(files: list[Path], folder: Path) -> list[str]:
    """Move what was fetched to its place, and write its sums down."""
    sums = _sums(folder)
    for file in files:
        found = _sum(file)
        if found != _PINNED.get(file.name, found):
            raise CorruptObject(f"{file.name} is not the jar that Arco was tested with", hint="ask whoever runs the mirror")
        sums[file.name] = found
        file.replace(folder / file.name)
    text = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    beside = folder / f".{SUMS}"
    beside.write_text(text)
    beside.replace(folder / SUMS)
    return [file.name for file in files]


def _is_whole(file: Path) -> bool:
    """Whether a jar is there as it was fetched."""
    if not file.is_file():
        return False
    wanted = _PINNED.get(file.name) or _sums(file.parent).get(file.name)
    return wanted is None or _sum(file) == wanted


def refuse_damaged(file: Path) -> None:
    """That a jar is what was fetched: Java would load what is left of it, and fail elsewhere."""
    if not _is_whole(file):
        raise CorruptObject(f"{file} is damaged: its checksum is another", hint="arco spark jars fetches it again")


def _sums(folder: Path) -> dict[str, str]:
    file = folder / SUMS
    lines = file.read_text().splitlines() if file.is_file() else []
    return {name: found for found, _, name in (line.partition("  ") for line in lines) if name}


def _sum(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
