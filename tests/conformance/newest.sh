#!/usr/bin/env bash
# The newest PyIceberg and DuckDB, and DataFusion by its page, installed apart from Arco, against servers of their own on a folder, on S3, and on S3
# with vended credentials.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(tests/conformance/venv.sh newest)
for root in folder s3 s3-vended; do
    for client in pyiceberg duckdb; do
        .venv/bin/python -m tests.conformance.walk "$root" "$python" "tests/conformance/clients/${client}_walk.py"
    done
    .venv/bin/python -m tests.conformance.walk "$root" "$python" tests/conformance/clients/datafusion_walk.py \
        "$PWD/docs/clients/datafusion.md"
done
