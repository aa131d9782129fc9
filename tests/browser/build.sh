#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings what the browser tests need into .tools/: Chromium if the system has none, DuckDB-WASM with its Parquet extension, and
# what drives the browser. The folder is named by all that it is made of, is made beside its final place and renamed at the end.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=$root/.tools

stop() {
    echo "build.sh: $1" >&2
    exit 1
}

need_chromium() {
    command -v chromium >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "build.sh: installing chromium" >&2
        apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends chromium >/dev/null && return
    fi
    stop "the browser tests need chromium on the path: install it (Debian: chromium) and run this again"
}

need_node() {
    local major
    major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || major=0
    if [ "$major" -lt 20 ] || ! command -v npm >/dev/null; then
        stop "the browser tests need Node 20 or newer with npm: install it and run this again"
    fi
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

need_chromium
need_node
# toolbox.py computes the same name, so that a test never runs on older packages than it says.
name=browser-$(cat "$here/package-lock.json" "$here/extension.lock" | sha256 | cut -c1-12)
if [ -d "$tools/$name" ]; then
    echo "$name: already there"
    exit
fi
mkdir -p "$tools"
staging=$(mktemp -d "$tools/.building.XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$staging/"
(cd "$staging" && npm ci --no-audit --no-fund --loglevel=error)
"$root/.venv/bin/python" -m pip download -q --no-deps --require-hashes -r "$here/extension.lock" -d "$staging/carrier"
"$root/.venv/bin/python" -m zipfile -e "$staging"/carrier/*.whl "$staging/carrier/whole"
mv "$staging/carrier/whole/embedding_atlas/static/duckdb-wasm" "$staging/extensions"
rm -rf "$staging/carrier"
mv "$staging" "$tools/$name"
echo "$name: built"
