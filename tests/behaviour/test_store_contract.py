"""Every store keeps every promise of the contract."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from behaviour.adapters import ADAPTERS, WITH_NODE_OR_GO, cases_of, grounds
from behaviour.ground import Ground
from behaviour.store_contract import Case

Give = Callable[[], Ground]


@pytest.fixture(scope="module")
def give() -> Iterator[Callable[[str], Give]]:
    """Grounds by adapter; each server is started on first use and stopped at the end of the module."""
    started: dict[str, Give] = {}
    with ExitStack() as stack:

        def of(adapter: str) -> Give:
            if adapter not in started:
                started[adapter] = stack.enter_context(grounds(adapter))
            return started[adapter]

        yield of


def _parameters() -> list[object]:
    return [
        pytest.param(
            adapter,
            case,
            id=f"{adapter}-{case.__name__}",
            marks=[pytest.mark.stores] if adapter in WITH_NODE_OR_GO else [],
        )
        for adapter in ADAPTERS
        for case in cases_of(adapter)
    ]


@pytest.mark.parametrize(("adapter", "case"), _parameters())
def test_the_store_keeps_its_promise(give: Callable[[str], Give], adapter: str, case: Case) -> None:
    asyncio.run(case(give(adapter)()))


def test_the_contract_has_at_least_sixty_cases() -> None:
    assert len(cases_of("memory")) >= 60
    assert len(cases_of("seaweedfs")) >= 85
