"""For the unit tests of a project: call an asset as Arco would, on a small Spark of its own, and compare rows."""

from arco.testing.calling import run, run_context, run_sql
from arco.testing.comparing import assert_same_rows
from arco.testing.sessions import local_spark

__all__ = ["assert_same_rows", "local_spark", "run", "run_context", "run_sql"]
