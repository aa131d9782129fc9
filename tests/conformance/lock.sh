#!/usr/bin/env bash
# Renews the pinned versions and hashes of the clients that have an environment of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."

for name in newest spark35 flink trino peers; do
    .venv/bin/uv pip compile --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --upgrade -q \
        "tests/conformance/clients/$name.in" -o "tests/conformance/clients/$name.txt"
    if grep -nE '^--|https?://' "tests/conformance/clients/$name.txt"; then
        echo "lock: $name.txt names an index" >&2
        exit 1
    fi
done
