"""Chromium as tests use it: pages whose functions can be called, and everything that they asked the network for."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from browser.toolbox import HERE, program, toolbox


@dataclass(frozen=True)
class Asked:
    """One request that the browser sent, or wanted to."""

    method: str
    url: str
    range: str | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    failed: str | None = None

    @property
    def received(self) -> int:
        """The bytes of its body."""
        return 0 if self.method == "HEAD" else int(self.headers.get("content-length", 0))


@dataclass(frozen=True)
class Said:
    """What a call came to."""

    value: Any
    error: str | None
    requests: list[Asked]
    console: list[str]


class PageError(Exception):
    """A call failed in the page."""


class Page:
    def __init__(self, browser: "Chromium", number: int) -> None:
        self._browser, self.number = browser, number
        self.seen: list[Asked] = []
        """Everything that was asked for since the page was opened."""

    def tried(self, call: str, *given: Any) -> Said:
        answer = self._browser.told({"page": self.number, "call": call, "with": given})
        said = Said(
            answer.get("value"), answer.get("error"), [Asked(**one) for one in answer["requests"]], answer["console"]
        )
        self.seen += said.requests
        return said

    def call(self, call: str, *given: Any) -> Any:
        said = self.tried(call, *given)
        if said.error is not None:
            raise PageError(f"{call}: {said.error} {said.console}")
        return said.value


class Chromium:
    """A browser, driven through the lines of `drive.mjs`."""

    def __init__(self, driver: "subprocess.Popen[str]") -> None:
        self._driver = driver

    def visit(self, address: str) -> Page:
        """A page in a profile of its own."""
        return self._opened({"visit": address})

    def again(self, page: Page, address: str) -> Page:
        """Another page in the profile of one: it has the same cache."""
        return self._opened({"visit": address, "beside": page.number})

    def _opened(self, document: dict[str, Any]) -> Page:
        answer = self.told(document)
        page = Page(self, answer["page"])
        page.seen += [Asked(**one) for one in answer["requests"]]
        assert not answer["console"], answer["console"]
        return page

    def told(self, document: dict[str, Any]) -> dict[str, Any]:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(json.dumps(document) + "\n")
        self._driver.stdin.flush()
        line = self._driver.stdout.readline()
        assert line, f"the browser ended, with status {self._driver.wait(30)}"
        found: dict[str, Any] = json.loads(line)
        return found


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """A headless browser, for the length of a block."""
    packages = toolbox() / "node_modules"
    driver = subprocess.Popen(
        [program("node"), str(HERE / "drive.mjs"), program("chromium"), str(packages)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Chromium(driver)
    finally:
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.close()
        try:
            driver.wait(30)
        finally:
            driver.kill()
            driver.wait()
            driver.stdout.close()
