#!/usr/bin/env bash
# Copies the jars that Spark needs for s3:// into .tools/jars-s3 (or the folder given): 18 MB, without the 600 MB bundle.
# A second run does nothing. Needs Maven; without it Spark fetches the same jars itself when it starts.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/arco spark jars s3 --into "${1:-.tools/jars-s3}" >&2
