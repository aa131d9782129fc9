"""The line of an asset's code that names something: where a read stands that was not declared.

Spark does not tell which line of Python a relation came from, so the text of the asset's own function is looked through for the
name. Where it is not found (it is put together, or in a helper) the asset's own place is named.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable

from arco.servo.sdk.definitions import AssetDefinition, CallSite


def line_naming_table(asset: AssetDefinition, table: str) -> CallSite:
    """Where a table is named, as Spark calls it: its catalog and its namespace may be left out in the code."""
    parts = table.replace("`", "").split(".")
    names = {".".join(parts[first:]) for first in range(len(parts))}
    return _line_with(asset, lambda text: text.replace("`", "") in names or any(_is_word(name, text) for name in names))


def line_naming_path(asset: AssetDefinition, path: str) -> CallSite:
    """Where a file is named, or a folder above it."""
    return _line_with(asset, lambda text: "/" in text.strip("/") and text.rstrip("/*") in path)


def _is_word(name: str, text: str) -> bool:
    """Whether a query in the code names it."""
    return " " in text and name in text.replace("`", "").split()


def _line_with(asset: AssetDefinition, says: Callable[[str], bool]) -> CallSite:
    if asset.function is None:
        return asset.where
    core = inspect.unwrap(asset.function)
    try:
        lines, first = inspect.getsourcelines(core)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return asset.where
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said]
    found = [node.lineno for node in texts if isinstance(node.value, str) and node.value.strip() and says(node.value)]
    return CallSite(asset.where.file, first + min(found) - 1) if found else asset.where
