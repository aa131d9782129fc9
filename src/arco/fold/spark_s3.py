"""How Spark reaches a bucket: the Hadoop connector's jars, and the root's options in the connector's words.

The connector is 18 MB of jars (`tools/s3_jars.sh` copies them into a folder), not the 600 MB bundle. Without that folder Spark is
told to fetch the same jars itself when it starts. Options are given for the root's bucket alone, so that its keys are sent
nowhere else.
"""

from collections.abc import Mapping
from pathlib import Path

import pyspark

from arco.kernel.errors import InvalidInput
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
    return {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", **found, **_jars(jars_folder)}


def hadoop_version() -> str:
    """The version of Hadoop that this PySpark carries: the connector must be the same."""
    jars = sorted(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))
    if not jars:
        raise InvalidInput("this PySpark carries no Hadoop", hint="give the connector in the project's Spark settings")
    return jars[-1].name.removeprefix("hadoop-client-api-").removesuffix(".jar")


def _provider(options: Mapping[str, str]) -> str | None:
    if options.get("anonymous", "false").lower() in {"true", "1", "yes"}:
        return "AnonymousAWSCredentialsProvider"
    if "session_token" in options:
        return "TemporaryAWSCredentialsProvider"
    return "SimpleAWSCredentialsProvider" if "access_key_id" in options else None


def _jars(folder: Path | None) -> dict[str, str]:
    jars = sorted(str(jar.resolve()) for jar in folder.glob("*.jar")) if folder is not None else []
    if jars:
        return {"spark.jars": ",".join(jars)}
    parts = [f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"]
    parts += [f"software.amazon.awssdk:{part}:{SDK_VERSION}" for part in _SDK_PARTS]
    return {"spark.jars.packages": ",".join(parts), "spark.jars.excludes": ",".join(_EXCLUDED)}
