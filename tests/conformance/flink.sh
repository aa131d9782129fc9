#!/usr/bin/env bash
# Flink by its page, with Iceberg's runtime and Hadoop's classes, installed apart from Arco, against servers of its own: one on a
# folder, one on S3 that vends.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly runtime=iceberg-flink-runtime-2.1-1.11.0 api=hadoop-client-api-3.4.3 libraries=hadoop-client-runtime-3.4.3
readonly amazon=iceberg-aws-bundle-1.11.0

# The Java that the kit and Spark 3.5 need; Flink was tried on no other.
major=$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
if [ "$major" != 17 ]; then
    echo "flink: it is run on Java 17, and java is ${major:-not there}: install openjdk-17-jre-headless and put it first on the PATH" >&2
    exit 1
fi
python=$(tests/conformance/venv.sh flink)
reader=$(tests/conformance/venv.sh newest)
# Not beside Spark's: whoever starts Spark with that folder would get Hadoop twice.
jars=$PWD/.tools/jars-flink
tools/maven.sh
.venv/bin/arco spark jars --into "$jars" org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0 \
    org.apache.iceberg:iceberg-aws-bundle:1.11.0 \
    org.apache.hadoop:hadoop-client-api:3.4.3 org.apache.hadoop:hadoop-client-runtime:3.4.3 >&2
(cd "$jars" && sha256sum --check --quiet) <<SUMS
6443332781f26a7199009d9517cd1eb013fbf54ca1c9759a2a9e487542b1d52a  hadoop-client-api-3.4.3.jar
bd20267b0555766ae84697dd888f074ca326d8e2ec3c0008928a6ac2966c67de  hadoop-client-runtime-3.4.3.jar
38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f  iceberg-aws-bundle-1.11.0.jar
39e658d876f253815b4b17c6676bebf6a24d517afe93a21298106d1d7fa97331  iceberg-flink-runtime-2.1-1.11.0.jar
SUMS
# walk ROOT KEYS JAR...
walk() {
    .venv/bin/python -m tests.conformance.walk "$1" "$python" tests/conformance/clients/flink_walk.py \
        "$PWD/docs/clients/flink.md" "$2" "$reader" "$jars/$runtime.jar" "$jars/$api.jar" "$jars/$libraries.jar" "${@:3}"
}
walk folder none
walk s3-vended vended "$jars/$amazon.jar"
