"""The `arco` command as the shell calls it, in this process."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from arco.surface.cli.main import run


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Shell = Callable[..., Ended]


@pytest.fixture
def arco(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    def command(*args: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["arco", *args])
        code: Any = 0
        try:
            run()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return command
