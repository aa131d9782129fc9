"""Schedules as their authors write them: when something is made by itself, and what.

    schedule("nightly", cron="30 2 * * *", timezone="Europe/Berlin", make="orders+")      at times of the clock
    schedule("new_orders", after="orders_raw", make="orders+")                            when a table that others write changes
    schedule("in_time", keep_fresh="tag:finance")                                         before `fresh_within` runs out

The same words stand in arco.toml, under [schedules.nightly]. A schedule that can never fire is refused when the project is
loaded. What must never enter: a clock, the store, and what a tick does.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from arco.kernel.asset_key import AssetKey
from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import ArcoError, InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import ScheduleName, clip
from arco.servo.sdk.authoring import Asset, choice
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.definitions import AssetDefinition, CallSite, Mode
from arco.servo.sdk.graph import Graph
from arco.servo.sdk.selection import find, select

_SOME_DAY_MS = 4_102_444_800_000  # 2100
OPTIONS = ("after", "catch_up", "cron", "description", "keep_fresh", "make", "mode", "parameters", "partitions", "timezone")
_CRON_ONLY = ("catch_up", "timezone")


class CatchUp(StrEnum):
    """What becomes of ticks that nobody was there for."""

    ALL = "all"  # each of them, in order
    LATEST = "latest"  # the last of them, for all
    NONE = "none"  # none that is more than a few minutes late


@dataclass(frozen=True, slots=True)
class AtTimes:
    """By a cron expression, in a time zone."""

    cron: Cron
    timezone: str
    catch_up: CatchUp


@dataclass(frozen=True, slots=True)
class AfterCommits:
    """When one of these tables, which others write, has new content."""

    sources: tuple[AssetKey, ...]


@dataclass(frozen=True, slots=True)
class InTime:
    """So that what is selected is made again before it is older than it may be."""

    assets: tuple[AssetKey, ...]


When = AtTimes | AfterCommits | InTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDefinition:
    """One schedule, looked up and checked. `words`, `partitions`, `mode` and `parameters` are what it asks a plan for."""

    name: str
    where: CallSite
    when: When
    words: tuple[str, ...] = ()
    partitions: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.STALE
    parameters: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    def document(self) -> dict[str, Any]:
        """What it does, as it is stored."""
        return {
            "when": _when_document(self.when),
            "make": list(self.words),
            "partitions": dict(sorted(self.partitions.items())),
            "mode": self.mode.value,
            "parameters": dict(sorted(self.parameters.items())),
        }

    @property
    def version(self) -> str:
        """Changes when it does anything else; not when people describe it otherwise."""
        return schedule_version(self.name, self.document())


def schedule_version(name: str, document: dict[str, Any]) -> str:
    """The version of a schedule that does what a document says."""
    return fingerprint("schedule", name, canonical_bytes(document))[:16]


@dataclass(frozen=True, slots=True)
class WrittenSchedule:
    """A schedule as it is written: nothing is looked up yet."""

    name: str
    where: CallSite
    given: Mapping[str, Any]


_collecting: ContextVar[list[WrittenSchedule] | None] = ContextVar("schedules", default=None)


@contextmanager
def collected_schedules() -> Iterator[list[WrittenSchedule]]:
    """The schedules that are made inside this block, in order."""
    found: list[WrittenSchedule] = []
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def schedule(  # noqa: PLR0913 - one parameter an option
    name: str,
    *,
    cron: str | None = None,
    timezone: str | None = None,
    catch_up: str | None = None,
    after: Any = (),
    keep_fresh: Any = (),
    make: Any = (),
    partitions: Mapping[str, str] | None = None,
    mode: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    description: str = "",
) -> WrittenSchedule:
    """Have something made by itself: at times (`cron`), `after` commits to sources, or to `keep_fresh` what may get old.

    `make` is what `arco run` would be asked for; nothing means everything. Ticks fire while `arco schedule tick` is called.
    """
    frame = sys._getframe(1)
    given = {
        "cron": cron,
        "timezone": timezone,
        "catch_up": catch_up,
        "after": _words(after),
        "keep_fresh": _words(keep_fresh),
        "make": _words(make),
        "partitions": partitions,
        "mode": mode,
        "parameters": parameters,
        "description": description,
    }
    made = WrittenSchedule(name, CallSite(frame.f_code.co_filename, frame.f_lineno), {k: v for k, v in given.items() if v})
    found = _collecting.get()
    if found is not None:
        found.append(made)
    return made


def defined(one: WrittenSchedule, graph: Graph) -> ScheduleDefinition:
    """A schedule of a project, with everything it names looked up. What is wrong is said with its place."""
    try:
        return _defined(one, graph)
    except ArcoError as error:
        raise InvalidInput(f"{one.where}: schedule {clip(one.name)!r}: {error.message}", hint=error.hint) from error


def zone(name: str) -> tzinfo:
    """A time zone by its name in the IANA database."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"there is no time zone {clip(name)!r}", hint='write its name in the IANA database: "Europe/Berlin", "UTC"'
        ) from None


def _defined(one: WrittenSchedule, graph: Graph) -> ScheduleDefinition:
    ScheduleName(one.name)
    unknown = sorted(set(one.given) - set(OPTIONS))
    if unknown:
        raise InvalidInput(f"there is no option {clip(unknown[0])!r}", hint=f"one of {', '.join(OPTIONS)}")
    when = _when(one.given, graph)
    words = _words(one.given.get("make", ()))
    if isinstance(when, InTime):
        if words:
            raise InvalidInput("what is kept fresh is what is made", hint="leave make out: keep_fresh names it")
    elif not select(graph, words):
        raise InvalidInput("it never fires: nothing of what it makes is made here", hint="make names assets, not sources")
    partitions = _texts(one.given, "partitions")
    _check_partitions([graph.assets[key] for key in _made(when, words, graph)], partitions)
    return ScheduleDefinition(
        name=one.name,
        where=one.where,
        when=when,
        words=words,
        partitions=partitions,
        mode=choice(Mode, one.given.get("mode", Mode.STALE.value), "mode"),
        parameters=_texts(one.given, "parameters"),
        description=str(one.given.get("description", "")),
    )


def _made(when: When, words: tuple[str, ...], graph: Graph) -> Iterable[AssetKey]:
    return when.assets if isinstance(when, InTime) else select(graph, words)


def _check_partitions(made: list[AssetDefinition], wanted: Mapping[str, str]) -> None:
    """Refuse partitions that nothing has, now or later. Which values a dynamic dimension will have, nobody knows."""
    known = {name for asset in made for name in asset.partitions.names}
    for name in sorted(set(wanted) - known):
        said = f"there are {', '.join(sorted(known)) or 'none'}"
        raise InvalidInput(f"nothing of what it makes has a dimension {clip(name)!r}", hint=said)
    fixed = [asset.partitions.without_dynamic() for asset in made]
    if wanted and not any(
        one.select({name: text for name, text in wanted.items() if name in one.names}, _SOME_DAY_MS) for one in fixed
    ):
        said = ", ".join(f"{name}={clip(text)}" for name, text in sorted(wanted.items()))
        raise InvalidInput(
            f"it never makes anything: there are no partitions in {said}", hint="name some that there are, or will be"
        )


def _when(given: Mapping[str, Any], graph: Graph) -> When:
    kinds = [word for word in ("cron", "after", "keep_fresh") if given.get(word)]
    if len(kinds) != 1:
        said = " and ".join(kinds) or "none of them"
        raise InvalidInput(
            f"it has {said}: it never fires, or nobody knows when", hint="give one of cron, after, keep_fresh"
        )
    if kinds != ["cron"]:
        for word in _CRON_ONLY:
            if word in given:
                raise InvalidInput(f"{word} is for cron", hint="leave it out")
    match kinds[0]:
        case "cron":
            timezone = str(given.get("timezone", "UTC"))
            zone(timezone)
            return AtTimes(
                Cron.parse(str(given["cron"])),
                timezone,
                choice(CatchUp, given.get("catch_up", CatchUp.LATEST.value), "catch_up"),
            )
        case "after":
            return AfterCommits(tuple(sorted(_source(graph, word) for word in _words(given["after"]))))
        case _:
            return InTime(_with_deadline(graph, _words(given["keep_fresh"])))


def _source(graph: Graph, word: str) -> AssetKey:
    key = find(graph.assets, word)
    if not graph.assets[key].is_source:
        raise InvalidInput(
            f"{key} is made here, and after is for tables that others write",
            hint=f"what needs it runs with it: make={str(key) + '+'!r}",
        )
    return key


def _with_deadline(graph: Graph, words: tuple[str, ...]) -> tuple[AssetKey, ...]:
    found = {key for key in select(graph, words) if graph.assets[key].fresh_within_s is not None}
    if not found:
        raise InvalidInput(
            "it never fires: nothing of what it keeps fresh has fresh_within", hint='write fresh_within="6h"'
        )
    return tuple(sorted(found))


def _when_document(when: When) -> dict[str, Any]:
    match when:
        case AtTimes(cron, timezone, catch_up):
            return {"kind": "cron", "cron": cron.text, "timezone": timezone, "catch_up": catch_up.value}
        case AfterCommits(sources):
            return {"kind": "source", "sources": [str(key) for key in sources]}
        case InTime(assets):
            return {"kind": "freshness", "assets": [str(key) for key in assets]}


def _words(given: Any) -> tuple[str, ...]:
    """Names, words of a selection and assets themselves, one or several."""
    several: Iterable[Any] = given if isinstance(given, list | tuple | set | frozenset) else (given,)
    words = [one.name if isinstance(one, Asset) else one for one in several]
    if not all(isinstance(one, str) and one.strip() for one in words):
        raise InvalidInput("what a schedule names is not text", hint='write names of assets: "orders+", "tag:daily"')
    return tuple(words)


def _texts(given: Mapping[str, Any], word: str) -> dict[str, str]:
    found = given.get(word, {})
    if not isinstance(found, Mapping) or any(isinstance(value, Mapping | list) for value in found.values()):
        raise InvalidInput(f"{word} is not a table of texts", hint=f'write {word} = {{ name = "value" }}')
    return {str(name): str(value) for name, value in found.items()}
