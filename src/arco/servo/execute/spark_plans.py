"""What a DataFrame reads, found in the plan that Spark analyzed; and the refusal of reads that an asset did not declare.

An asset's inputs come pinned to the planned snapshot. Code that goes to a table by itself, by name or by its files, would read
another version than the plan says, and nobody would know that it depends on it. So every file under the lake's root must
belong to an input, and no table is read by name. Files elsewhere are nobody's table: they are told, to be recorded.

What Spark no longer knows cannot be found: rows that were collected and made into a frame again. With Spark Connect the files
behind a frame that was cached are not told either.
What must never enter: reading a row.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.servo.execute.call_sites import line_naming_path, line_naming_table
from arco.servo.execute.file_access import plain_path
from arco.servo.sdk.definitions import AssetDefinition, CallSite

_HINT = "take it as an input of the asset: a parameter of its name, or inputs="
# A relation that has a name, at the start of a line of a plan's text.
_NAMED = re.compile(
    r"^[\s:|+-]*(?:Relation ([^\s\[]+)\[|RelationV2\[.*?\] (\S+)|HiveTableRelation \[([^\s,]+),)", re.MULTILINE
)
_TEXT_MAX = 200


@dataclass(frozen=True, slots=True)
class Reads:
    """`tables` by name; `paths` are files and folders; `others` is what is neither, such as another database."""

    tables: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def tables_and_files_read(rows: DataFrame) -> Reads:
    """What is read to compute these rows, each once and in order."""
    plan = getattr(rows, "_jdf", None)
    found = list(_told(rows) if plan is None else _walked(plan.queryExecution().analyzed()))
    return Reads(*(tuple(sorted({what for kind, what in found if kind == each})) for each in ("table", "path", "other")))


def refuse_undeclared(rows: DataFrame, *, asset: AssetDefinition, root: str, declared: Collection[str]) -> tuple[str, ...]:
    """What is read from outside the lake. Raises if a table is read by name, or a path of the lake that is not declared.

    `declared` are the files and folders of the asset's inputs.
    """
    reads = tables_and_files_read(rows)
    if reads.tables:
        table = reads.tables[0]
        raise _undeclared(asset, line_naming_table(asset, table), f"the table {clip(table, _TEXT_MAX)} by its name")
    lake, known = _spelled(root), {_spelled(one) for one in declared}
    external = []
    for path in reads.paths:
        if not (_is_below(path, lake) or _is_below(lake, path)):
            external.append(path)
        elif not any(above in known for above in _upwards(path)):
            raise _undeclared(asset, line_naming_path(asset, path), clip(path, _TEXT_MAX))
    return (*external, *reads.others)


def _undeclared(asset: AssetDefinition, where: CallSite, what: str) -> InvalidInput:
    return InvalidInput(f"{where}: {asset.key} reads {what}, which is not among its inputs", hint=_HINT)


# Where Spark runs in this process: the plan itself


def _walked(analyzed: Any) -> Iterator[tuple[str, str]]:
    inner = analyzed.subqueriesAll()
    for plan in (analyzed, *(inner.apply(place) for place in range(inner.size()))):
        leaves = plan.collectLeaves()
        for place in range(leaves.size()):
            leaf = leaves.apply(place)
            if (reader := _LEAVES.get(leaf.getClass().getSimpleName())) is not None:
                yield from reader(leaf)


def _relation(leaf: Any) -> Iterator[tuple[str, str]]:
    relation = leaf.relation()
    if leaf.catalogTable().isDefined():
        yield "table", leaf.catalogTable().get().identifier().unquotedString()
    elif relation.getClass().getSimpleName() == "HadoopFsRelation":
        # As one text: one call, however many there are.
        for path in relation.location().rootPaths().mkString("\n").split("\n"):
            if path:
                yield "path", _spelled(path)
    else:
        yield "other", clip(relation.toString(), _TEXT_MAX)


def _second_relation(leaf: Any) -> Iterator[tuple[str, str]]:
    name = leaf.table().name()
    if leaf.identifier().isDefined():
        yield "table", name
        return
    kind, _, paths = name.partition(" ")
    if not paths:
        yield "other", clip(kind, _TEXT_MAX)
    for path in filter(None, paths.split(",")):
        yield "path", _spelled(path)


def _hive_relation(leaf: Any) -> Iterator[tuple[str, str]]:
    yield "table", leaf.tableMeta().identifier().unquotedString()


_LEAVES: dict[str, Callable[[Any], Iterator[tuple[str, str]]]] = {
    "LogicalRelation": _relation,
    "DataSourceV2Relation": _second_relation,
    "HiveTableRelation": _hive_relation,
}


# Where it runs elsewhere: what it tells


def _told(rows: DataFrame) -> Iterator[tuple[str, str]]:
    text: str = rows._explain_string(extended=True)  # type: ignore[operator]
    yield from (("table", name) for name in named_relations(text))
    yield from (("path", _spelled(unquote(file))) for file in rows.inputFiles())


def named_relations(explained: str) -> list[str]:
    """The tables in the text of a plan."""
    analyzed = explained.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    return [next(filter(None, match)) for match in _NAMED.findall(analyzed)]


# Paths


def _spelled(path: str) -> str:
    return plain_path(path).rstrip("/")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _upwards(path: str) -> Iterator[str]:
    """The path and every folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
