#!/usr/bin/env bash
# Brings the jars that the tests of clients need into .tools/jars: Iceberg's runtime for Spark.
# A second run finds nothing to do. Other jars, by their Maven names, can be given as arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly spark_runtime=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0

say() { echo "jars: $*" >&2; }

# fetch GROUP:NAME:VERSION: downloaded beside its final place and renamed, so that half a jar never looks like one.
fetch() {
    local name version file staging said
    name=$(cut -d: -f2 <<<"$1") version=$(cut -d: -f3 <<<"$1")
    file=$name-$version.jar
    [ -f ".tools/jars/$file" ] && return
    tools/maven.sh
    mkdir -p .tools/jars
    staging=$(mktemp -d .tools/jars/.fetching.XXXXXX)
    say "fetching $file"
    said=$(mvn -q -B dependency:copy -Dartifact="$1" -DoutputDirectory="$staging" 2>&1) || {
        rm -rf "$staging"
        echo "$said" >&2
        say "$1 could not be fetched from Maven's repository; is there a network?"
        exit 1
    }
    mv "$staging/$file" ".tools/jars/$file"
    rm -rf "$staging"
}

for artifact in "${@:-$spark_runtime}"; do
    fetch "$artifact"
done
