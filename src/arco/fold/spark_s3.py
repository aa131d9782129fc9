"""How Spark reaches a bucket: the Hadoop connector's jars, and the root's options in the connector's words.

The connector is 18 MB of jars (`arco spark jars --s3` copies them into a folder), not the 600 MB bundle. Without that folder
Spark is told to fetch the same jars itself when it starts. Options are given for the root's bucket alone, so that its keys are
sent nowhere else.
"""

from collections.abc import Mapping
from pathlib import Path

from arco.fold.spark_jars import hadoop_version
from arco.storage.roots import parse_root

SDK_VERSION = "2.31.78"
_SDK_PARTS = ("s3", "s3-transfer-manager", "sts")
_EXCLUDED = ("software.amazon.awssdk:bundle", "org.apache.hadoop:hadoop-common", "org.slf4j:slf4j-api")
_PROVIDERS = "org.apache.hadoop.fs.s3a"

_OPTIONS = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "path_style": "path.style.access",
}


def s3_settings(root: str, options: Mapping[str, str], jars_folder: Path | None) -> dict[str, str]:
    """Spark's settings for a root. Empty for a folder; for other clouds, bring a connector in the project's settings."""
    if not root.startswith("s3://"):
        return {}
    bucket = parse_root(root).bucket
    prefix = f"spark.hadoop.fs.s3a.bucket.{bucket}"
    found = {f"{prefix}.{theirs}": options[ours] for ours, theirs in _OPTIONS.items() if ours in options}
    if options.get("endpoint", "").startswith("http://"):
        found[f"{prefix}.connection.ssl.enabled"] = "false"
    if "endpoint" in options and "region" not in options:
        found[f"{prefix}.endpoint.region"] = "us-east-1"
    provider = _provider(options)
    if provider is not None:
        found[f"{prefix}.aws.credentials.provider"] = f"{_PROVIDERS}.{provider}"
    return {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", **found, **_packages(jars_folder)}


def _provider(options: Mapping[str, str]) -> str | None:
    if options.get("anonymous", "false").lower() in {"true", "1", "yes"}:
        return "AnonymousAWSCredentialsProvider"
    if "session_token" in options:
        return "TemporaryAWSCredentialsProvider"
    return "SimpleAWSCredentialsProvider" if "access_key_id" in options else None


def _packages(folder: Path | None) -> dict[str, str]:
    if folder is not None and any(folder.glob("hadoop-aws-*.jar")):
        return {}  # it is among the jars that Spark is started with anyway
    return {"spark.jars.packages": ",".join(connector_parts()), "spark.jars.excludes": ",".join(_EXCLUDED)}


def connector_parts() -> list[str]:
    """The connector by its Maven names, for the Hadoop of this Spark."""
    parts = [f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"]
    return parts + [f"software.amazon.awssdk:{part}:{SDK_VERSION}" for part in _SDK_PARTS]
