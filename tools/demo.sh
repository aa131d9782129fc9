#!/usr/bin/env bash
# What works today, in under a minute: a folder that can be trusted with commits, and the simulator that says why.
set -euo pipefail
cd "$(dirname "$0")/.."
lake=$(mktemp -d)
trap 'rm -rf "$lake"' EXIT

step() { printf '\n\033[1m%s\033[0m\n$ %s\n' "$1" "$2"; }

step "1. Can this folder be trusted with commits?" "arco doctor --root ./lake"
.venv/bin/arco doctor --root "$lake/lake"

step "2. The Iceberg catalog, with PyIceberg, DuckDB and the shell" "python examples/catalog_tour.py"
.venv/bin/python examples/catalog_tour.py

step "3. Lost replies, crashes, stalls and power cuts: 50 seeds of each scenario" "python -m arco_sim run all --seeds 1..50"
.venv/bin/python -m arco_sim run all --seeds 1..50 --jobs 2

printf '\nNext: read ARCHITECTURE.md, or run \033[1mmake test\033[0m.\n'
