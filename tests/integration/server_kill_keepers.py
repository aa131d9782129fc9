"""Upkeep that runs while servers are killed, and is killed itself: as the product does it, and eager."""

import asyncio
import json
import os
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .server_fleet import Acknowledgements, Lake

_EAGER = Path(__file__).with_name("eager_upkeep.py")
_EAGER_S = 3.0
_EAGER_KINDS = ("transactions", "reconcile", "metadata", "names")


@dataclass
class Keepers:
    """Two `arco upkeep --every 1s`, one with the product's own graces and one with hardly any."""

    where: Lake
    chance: random.Random
    acknowledgements: Acknowledgements
    kills: int = 0
    _said: list[Path] = field(default_factory=list)

    async def run(self, begun: asyncio.Event) -> None:
        """From the beginning of the load until cancelled."""
        await begun.wait()
        arco = [str(Path(sys.executable).with_name("arco"))]
        eager = [sys.executable, str(_EAGER), str(_EAGER_S)]
        only = [part for kind in _EAGER_KINDS for part in ("--only", kind)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep([*arco, *self._words()]))
            group.create_task(self._keep([*eager, *self._words(), *only]))

    def _words(self) -> list[str]:
        options = [part for word, value in self.where.options.items() for part in ("-o", f"{word}={value}")]
        return ["upkeep", "--root", self.where.root, *options, "--every", "1s", "--json"]

    async def _keep(self, command: list[str]) -> None:
        while True:
            said = self.where.logs / f"upkeep-{len(self._said)}.json"
            self._said.append(said)
            with said.open("wb") as out, said.with_suffix(".log").open("wb") as log:
                process = await asyncio.create_subprocess_exec(
                    *command, stdout=out, stderr=log, env={**os.environ, "COLUMNS": "400"}
                )
            try:
                await self.acknowledgements.wait_for(self.chance.randint(100, 400))
                self.kills += 1
            finally:
                process.kill()
                await process.wait()

    def reports(self) -> list[dict[str, Any]]:
        """What all of them said they had done. What a killed one was about to say is not heard."""
        return [report for said in self._said for report in _reports(said.read_text())]


def _reports(text: str) -> list[dict[str, Any]]:
    decoder, place, found = json.JSONDecoder(), 0, list[dict[str, Any]]()
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            break
        found += document["reports"]
        place += len(text[place:]) - len(text[place:].lstrip())
    return found
