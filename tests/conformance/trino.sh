#!/usr/bin/env bash
# Trino by its page, with a Java of its own, installed apart from Arco, against servers of its own on S3: one that
# tells nobody its keys but by option, one that vends.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The newest release whose server is a Maven package. Its core and one connector are 540 MB; the whole is 820.
readonly version=476
place=$PWD/.tools/trino-server-$version

fetch() { mvn -q -B --strict-checksums dependency:copy "-Dartifact=$1" "-DoutputDirectory=$place.part" >&2; }

python=$(tests/conformance/venv.sh trino)
if [ ! -d "$place" ]; then
    echo "trino: fetching $version" >&2
    tools/maven.sh
    rm -rf "$place.part"
    fetch "io.trino:trino-server-core:$version:tar.gz"
    fetch "io.trino:trino-iceberg:$version:zip"
    (cd "$place.part" && sha256sum --check --quiet) <<SUMS
99edba5b491ed94d599aeb61e0794272d3569d8b563f3bb8569e8a49daa87b6c  trino-iceberg-$version.zip
0f388f9967c177ae70a47c099082fc95387f0c3cb96d8000d1d41fc3a5223158  trino-server-core-$version.tar.gz
SUMS
    tar -xzf "$place.part/trino-server-core-$version.tar.gz" --strip-components=1 -C "$place.part"
    "$python" -m zipfile -e "$place.part/trino-iceberg-$version.zip" "$place.part/plugin"
    rm "$place.part"/trino-*.*
    mv "$place.part" "$place"
fi
walk() {
    .venv/bin/python -m tests.conformance.walk "$1" "$python" tests/conformance/clients/trino_walk.py "$PWD/docs/clients/trino.md" "$place" "$2"
}
walk s3 own
walk s3-vended vended
