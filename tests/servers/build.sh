#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the store servers that need Node or Go into .tools/ at the root of the repository.
# Every output folder carries its version, is made beside its final place and renamed at the end: an
# interrupted build leaves nothing that looks finished, and a second run finds nothing to do.
set -euo pipefail
export LC_ALL=C

readonly azurite_version=3.35.0    # the last one that Node 18 and 20 can run; package.json pins the same
readonly versitygw_version=v1.8.0

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$(cd "$here/../.." && pwd)/.tools
mkdir -p "$tools"
staging=$(mktemp -d "$tools/.building.XXXXXX")
trap 'rm -rf "$staging"' EXIT

stop() {
    echo "build.sh: $1" >&2
    exit 1
}

need_node() {
    local major
    major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || major=0
    if [ "$major" -lt 18 ] || ! command -v npm >/dev/null; then
        stop "azurite needs Node 18 or newer with npm: install it and run this again"
    fi
}

need_go() {
    command -v go >/dev/null || stop "$1 needs Go 1.26 or newer: install it and run this again"
}

# finish NAME: the folder staged under that name is complete.
finish() {
    mv "$staging/$1" "$tools/$1"
    echo "$1: built"
}

present() {
    [ -d "$tools/$1" ] && echo "$1: already there"
}

build_azurite() {
    local name=azurite-$azurite_version
    present "$name" && return
    need_node
    mkdir "$staging/$name"
    cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$staging/$name/"
    (cd "$staging/$name" && npm ci --omit=dev --no-audit --no-fund --loglevel=error)
    finish "$name"
}

build_versitygw() {
    local name=versitygw-$versitygw_version
    present "$name" && return
    need_go versitygw
    mkdir "$staging/$name"
    GOBIN="$staging/$name" go install "github.com/versity/versitygw/cmd/versitygw@$versitygw_version"
    finish "$name"
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

build_gcsd() {
    local name
    # launch.py computes the same name, so that a test never runs a server older than its sources.
    name=gcsd-$(cd "$here/gcsd" && cat *.go go.mod go.sum | sha256 | cut -c1-12)
    present "$name" && return
    need_go gcsd
    mkdir "$staging/$name"
    (cd "$here/gcsd" && go build -trimpath -buildvcs=false -o "$staging/$name/gcsd" .)
    finish "$name"
}

build_azurite
build_versitygw
build_gcsd
