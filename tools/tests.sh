#!/usr/bin/env bash
# The test suite, in parts that workers take one after the other. A part that passes says so in a
# line, with what it skipped; one that fails is shown whole. `COVERAGE=1 tools/tests.sh` traces branches, and takes longer.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly rest="not stores and not browser and not campaign and not conformance"

# Long ones first, so that the workers end together. What is not named by itself is in a part of its own, and nothing is left out.
alone() { ls tests/integration/test_servo*.py tests/integration/test_{clusters,d6,fold,shop}*.py; }
sharing() { ls tests/integration/test_servo_{desk,gates,outside,spark_checks,spark_plans,spark_publish,spark_quarantine,spark_session}.py; }
together() { ls tests/integration/test_*.py | grep -vxFf <(alone; ls tests/integration/test_spark*.py); }
parts() {
    echo "-m campaign tests/simulation/test_scenarios.py -k 'not everybody'"
    echo "-m campaign tests/simulation/test_scenarios.py -k everybody"
    together | xargs grep -lwE 'spark|db' | xargs # one Spark for all of them
    together | xargs grep -LwE 'spark|db' | xargs
    echo tests/integration/test_spark*.py
    echo tests --ignore=tests/integration $(printf -- '--ignore=%s ' tests/unit/*/)
    echo "-m campaign tests/simulation --ignore=tests/simulation/test_scenarios.py"
    sharing | xargs -n 4 # a Spark for four of them
    alone | grep -vxFf <(sharing)
    for folder in tests/unit/*/; do
        [ "$folder" = tests/unit/__pycache__/ ] || echo "$folder"
    done
}

run_part() {
    local said code=0 started=$SECONDS pytest=$PYTEST
    [ "${2:-}" != campaign ] || pytest=.venv/bin/pytest # tracing slows these down too much
    said=$(mktemp)
    $pytest -m "$REST" "$@" >"$said" 2>&1 || code=$?
    times >"$said.times"
    (
        flock 9
        echo "== $* ($((SECONDS - started)) s; of the processor $(tail -1 "$said.times"))"
        if [ "$code" = 0 ]; then grep -aE "^SKIPPED|passed" "$said"; else cat "$said"; fi
    ) 9<"$0"
    rm -f "$said" "$said.times"
    [ "$code" = 0 ]
}
export -f run_part

if [ -n "${COVERAGE:-}" ]; then
    rm -f .coverage .coverage.*
    export PYTEST=".venv/bin/coverage run -m pytest"
else
    export PYTEST=".venv/bin/pytest"
fi
export REST="$rest"
.venv/bin/python -m compileall -q src
.venv/bin/python tools/spark_archive.py
# One more than there are cores: parts wait for processes that they started.
parts | xargs -P "$(($(nproc) + 1))" -L 1 bash -c 'run_part "$@"' "$0"
if [ -n "${COVERAGE:-}" ]; then
    .venv/bin/coverage combine -q
    .venv/bin/coverage report
fi
