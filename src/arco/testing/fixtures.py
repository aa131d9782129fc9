"""Fixtures for pytest. In conftest.py: `from arco.testing.fixtures import spark`."""

from collections.abc import Iterator
from typing import Any

import pytest

from arco.testing.sessions import local_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small Spark for all tests of a session."""
    with local_spark() as session:
        yield session
