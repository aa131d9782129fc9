#!/usr/bin/env bash
# The tests in two queues side by side, because much of both is waiting: those with real clients and Spark, and all others
# followed by the simulation campaigns (without coverage: tracing slows them down). What the second says is printed at its end.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly wanted="not stores and not campaign and not conformance"
said=$(mktemp)
trap 'kill %% 2>/dev/null || true; rm -f "$said"' EXIT

rm -f .coverage .coverage.*
{
    echo "tests: all that are not integration"
    .venv/bin/coverage run -m pytest -m "$wanted" --ignore tests/integration
    .venv/bin/pytest -m campaign
} >"$said" 2>&1 &
others=$!

code=0
.venv/bin/coverage run -m pytest -m "$wanted" tests/integration || code=$?
wait "$others" || code=$?
cat "$said"
[ "$code" = 0 ] || exit "$code"
.venv/bin/coverage combine -q
.venv/bin/coverage report
