#!/usr/bin/env bash
# What works today: a lakehouse on a folder. Raw tables from elsewhere, a pipeline on Spark, tables that every client reads.
set -euo pipefail
cd "$(dirname "$0")/.."
lake=$(mktemp -d)
trap 'rm -rf "$lake"' EXIT

step() { printf '\n\033[1m%s\033[0m\n$ %s\n' "$1" "$2"; }

step "Can this folder be trusted with commits?" "arco doctor --root ./lake"
.venv/bin/arco doctor --root "$lake/lake"

step "The example pipeline: a shop's month on Spark" "python examples/shop/tour.py"
.venv/bin/python examples/shop/tour.py "$lake/lake"

printf '\nNext: \033[1mmake demo-catalog\033[0m (the Iceberg catalog alone), \033[1marco init\033[0m (a project of your own), docs/projects.md.\n'
