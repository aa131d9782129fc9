"""What code can do in a session of its own and not through Spark Connect, found in its text before anything runs.

Connect sends plans to a server: there is no JVM to reach into and no RDD. Code that asks for either would fail when its turn
comes, after everything before it has been made. What must never enter: Spark.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable

from arco.kernel.errors import InvalidInput
from arco.servo.sdk.definitions import AssetDefinition, CallSite

_ABSENT = {"sparkContext", "rdd", "_jvm", "_jdf", "_jsc", "_jsparkSession", "_jmap", "_sc"}


def refuse_what_connect_lacks(assets: Iterable[AssetDefinition]) -> None:
    """That no asset asks for what Spark Connect has not."""
    for asset in assets:
        for code in (asset.function, *(getattr(check, "function", None) for check in asset.checks)):
            found = None if code is None else _first(code)
            if found is not None:
                where, word = found
                raise InvalidInput(
                    f"{where}: {asset.key} uses {word}, and Spark Connect has none",
                    hint="write it with DataFrames, or run it where Spark is not behind Connect: --spark local[*]",
                )


def _first(code: object) -> tuple[CallSite, str] | None:
    """The first place in a function's own text that asks for something absent."""
    plain = inspect.unwrap(code) if callable(code) else code
    try:
        lines, first = inspect.getsourcelines(plain)  # type: ignore[arg-type]
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None  # made elsewhere than in a file: it says so itself when it runs
    used = [one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr in _ABSENT]
    if not used:
        return None
    place = min(used, key=lambda one: one.lineno)
    return CallSite(inspect.getsourcefile(plain) or "?", first + place.lineno - 1), place.attr  # type: ignore[arg-type]
