#!/usr/bin/env bash
# Makes .venv with exactly the locked packages. Says in one line each what is missing, and what to do about it.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

java_major() {
    java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1
}

install_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing $1"
    apt-get update -q >/dev/null && apt-get install -y -q "$1" >/dev/null
}

missing=0
python=$(find_python) || {
    say "Python 3.11 or newer is missing: install it, or set PYTHON to its path"
    missing=1
}
if ! command -v java >/dev/null || [ "$(java_major)" -lt 17 ] 2>/dev/null; then
    install_debian openjdk-17-jre-headless || {
        say "Java 17 or newer is missing (Spark runs on it): install a JRE, for example openjdk-17-jre-headless"
        missing=1
    }
fi
[ "$missing" = 0 ] || exit 1

wanted=$( (cat requirements.lock pyproject.toml && "$python" --version) | sha256sum | cut -c1-16)
stamp=.venv/.installed
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
say "making .venv with $("$python" --version)"
[ -x .venv/bin/python ] || "$python" -m venv .venv || {
    say "the venv module is missing: install python3-venv"
    exit 1
}
.venv/bin/python -m pip install -q --require-hashes -r requirements.lock
.venv/bin/python -m pip install -q --no-deps --no-build-isolation -e .
echo "$wanted" >"$stamp"
say "done"
