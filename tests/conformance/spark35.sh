#!/usr/bin/env bash
# Spark 3.5 with Iceberg's runtime, installed apart from Arco, against a server of its own on a folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly version=1.12.0 sha256=8dd8c90e54ed1a20f2461309d047a255ee56382eb7c0a46162b27a4936fd86dc
readonly runtime=iceberg-spark-runtime-3.5_2.12

# Spark 3.5 calls into Java's inside; it was made for 8, 11 and 17.
major=$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
if [ "$major" != 17 ]; then
    echo "spark35: Spark 3.5 needs Java 17, and java is ${major:-not there}: install openjdk-17-jre-headless and put it first on the PATH" >&2
    exit 1
fi
python=$(tests/conformance/venv.sh spark35)
tools/jars.sh "org.apache.iceberg:$runtime:$version"
jar=$PWD/.tools/jars/$runtime-$version.jar
echo "$sha256  $jar" | sha256sum --check --quiet
exec .venv/bin/python -m tests.conformance.walk folder "$python" tests/conformance/clients/spark_walk.py "$jar"
