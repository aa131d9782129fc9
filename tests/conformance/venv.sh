#!/usr/bin/env bash
# venv.sh NAME makes an environment of exactly what clients/NAME.txt pins, under .tools, and prints the path of its Python.
# A second run finds it there.
set -euo pipefail
cd "$(dirname "$0")/../.."

requirements=tests/conformance/clients/$1.txt
python=.venv/bin/python
wanted=$( (cat "$requirements" && "$python" --version) | sha256sum | cut -c1-12)
place=$PWD/.tools/$1-$wanted
if [ ! -f "$place/.installed" ]; then
    echo "venv: installing $1" >&2
    rm -rf "$place"
    "$python" -m venv "$place"
    "$place/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$requirements" >&2 || {
        echo "venv: $requirements could not be installed; is there a network?" >&2
        exit 1
    }
    touch "$place/.installed"
fi
echo "$place/bin/python"
