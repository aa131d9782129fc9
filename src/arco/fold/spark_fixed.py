"""What of Spark's settings is not for projects to choose, and what one asset may choose for itself. No Spark is needed to say it.

Some settings decide what bytes mean: they are fixed. Most are settled when Spark starts and hold for all assets of a process.
What is left, Spark takes at run time: an asset may set it for its own jobs.
"""

from collections.abc import Mapping
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

FIXED: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # A file without ids must be an error: with this on, every one of its columns would be null.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_AT_RUN_TIME = "spark.sql."


def refuse_contradictions(conf: Mapping[str, str]) -> None:
    """That nothing which bytes depend on is set otherwise."""
    for word, value in FIXED.items():
        if conf.get(word, value).lower() != value.lower():
            raise InvalidInput(f"{word} is {clip(conf[word])!r}", hint=f"leave it out: it is always {value}")


def own_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings that one asset gives to Spark, as texts. Those that only hold for all assets are refused."""
    found = {word: spelled(value) for word, value in given.items()}
    for word in found:
        if not word.startswith("spark."):
            raise InvalidInput(f"spark has {clip(word)!r}", hint='write {"spark.sql.shuffle.partitions": 8}')
        if not word.startswith(_AT_RUN_TIME):
            raise not_for_one_asset(word)
    refuse_contradictions(found)
    return found


def spelled(value: Any) -> str:
    """A value as Spark writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"a setting of Spark is {clip(repr(value))}", hint="a text, a number or true or false")
    return str(value)


def not_for_one_asset(word: str) -> InvalidInput:
    """The refusal of a setting that Spark does not take from one asset."""
    return InvalidInput(
        f"Spark does not take {clip(word)} for one asset alone",
        hint="if it is spelled right, it is settled when Spark starts: set it in arco.toml, under [spark] conf",
    )
