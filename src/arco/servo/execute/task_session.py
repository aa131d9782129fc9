"""The Spark session of a process that has keys for one task alone."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from arco.fold.spark_session import Session, SparkSettings, open_session
from arco.fold.spark_threads import opened
from arco.storage.roots import parse_root


async def session_of(settings: SparkSettings, root: str, options: Mapping[str, str]) -> Session:
    """A session that asks for no more than its keys open.

    By default the connector looks at every folder above one that it makes, up to the bucket, and what these keys do not open it
    takes for a failure.
    """
    if root.startswith("s3://"):
        flags = {f"spark.hadoop.fs.s3a.bucket.{parse_root(root).bucket}.performance.flags": "create,mkdir"}
        settings = replace(settings, conf={**flags, **settings.conf})
    return await opened(partial(open_session, settings, root, options))
