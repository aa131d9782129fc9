#!/usr/bin/env bash
# Sees to it that Maven is there, and with --compiler a Java compiler: installs them where it may, else says what is missing.
set -euo pipefail

say() { echo "maven: $*" >&2; }

# need COMMAND PACKAGE WHAT
need() {
    command -v "$1" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing $2"
        apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends "$2" >/dev/null && return
    fi
    say "$3 is missing: install it, for example with apt-get install $2"
    exit 1
}

need mvn maven "Maven, which fetches jars and runs Iceberg's tests,"
if [ "${1:-}" = --compiler ]; then
    need javac openjdk-17-jdk-headless "A Java compiler (JDK 17)"
fi
