#!/usr/bin/env bash
# Sees to it that wrk is there, which asks servers under measurement: installs it where it may, else says what is missing.
set -euo pipefail

command -v wrk >/dev/null && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "wrk: installing it" >&2
    apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends wrk >/dev/null && exit
fi
echo "wrk is missing: install it, for example with apt-get install wrk" >&2
exit 1
