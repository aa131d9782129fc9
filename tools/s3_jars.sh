#!/usr/bin/env bash
# Copies the jars that Spark needs for s3:// into .tools/jars-s3 (or the folder given): 18 MB, without the 600 MB bundle.
# A second run does nothing. Needs Maven; without it Spark fetches the same jars itself when it starts.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "s3_jars: $*" >&2; }

folder=${1:-.tools/jars-s3}
python=${PYTHON:-.venv/bin/python}
read -r hadoop sdk < <("$python" -c 'from arco.fold.spark_s3 import SDK_VERSION, hadoop_version as hadoop; print(hadoop(), SDK_VERSION)')
stamp="$folder/.made-for"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$hadoop $sdk" ]; then
    exit 0
fi
command -v mvn >/dev/null || {
    say "Maven is missing: install it, or let Spark fetch the jars when it starts"
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>arco</groupId>
  <artifactId>s3-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.hadoop</groupId>
      <artifactId>hadoop-aws</artifactId>
      <version>$hadoop</version>
      <exclusions>
        <exclusion><groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId></exclusion>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>hadoop-common</artifactId></exclusion>
      </exclusions>
    </dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>s3</artifactId><version>$sdk</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>s3-transfer-manager</artifactId><version>$sdk</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>sts</artifactId><version>$sdk</version></dependency>
  </dependencies>
</project>
POM
say "copying the connector for Hadoop $hadoop"
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" -DincludeScope=runtime
rm -f "$work"/jars/slf4j-api-*.jar
mkdir -p "$folder"
mv "$work"/jars/*.jar "$folder/"
echo "$hadoop $sdk" >"$stamp"
say "$(find "$folder" -name '*.jar' | wc -l) jars in $folder"
