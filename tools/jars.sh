#!/usr/bin/env bash
# Brings the jars that the tests of clients need into .tools/jars: Iceberg's runtime for Spark.
# A second run finds nothing to do. Other jars, by their Maven names, can be given as arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

fetch() { .venv/bin/arco spark jars --into .tools/jars "$@" >&2; }

command -v mvn >/dev/null || fetch "$@" 2>/dev/null || tools/maven.sh
fetch "$@"
