"""`GET /api/v1/health`, `/sla` and the same of one asset; why one is as it is. All of it depends on the time of asking."""

from msgspec.structs import replace

from arco.read import assets
from arco.read.explain import Explanation, explain
from arco.read.health import HealthPage, SlaPage
from arco.surface.http.ask_assets import ASSET, Filtered
from arco.surface.http.asking import OfAsset, Question, Sitting
from arco.surface.http.declaring import API


async def _health(sitting: Sitting, asked: Filtered) -> HealthPage:
    return await assets.health_list(sitting.reader, sitting.now_ms, asked.filter, asked.window)


async def _health_of_one(sitting: Sitting, asked: OfAsset) -> HealthPage:
    return await assets.health(sitting.reader, asked.asset, sitting.now_ms)


async def _sla(sitting: Sitting, asked: Filtered) -> SlaPage:
    wanted = replace(asked.filter, promised=True)
    return await assets.sla_list(sitting.reader, sitting.now_ms, wanted, asked.window)


async def _sla_of_one(sitting: Sitting, asked: OfAsset) -> SlaPage:
    return await assets.sla(sitting.reader, asked.asset, sitting.now_ms)


async def _explain(sitting: Sitting, asked: OfAsset) -> Explanation:
    return await explain(sitting.reader, asked.asset, sitting.now_ms)


HEALTH_QUESTIONS = (
    Question(f"{API}/health", "The health of assets, by name", Filtered, HealthPage, _health, by_clock=True),
    Question(f"{API}/sla", "Assets that promise to be fresh, and whether they are", Filtered, SlaPage, _sla, by_clock=True),
    Question(f"{ASSET}/health", "Its health", OfAsset, HealthPage, _health_of_one, by_clock=True),
    Question(f"{ASSET}/sla", "Whether it is as fresh as it promises to be", OfAsset, SlaPage, _sla_of_one, by_clock=True),
    Question(
        f"{ASSET}/explain", "Why it is stale or unhealthy, and what to do", OfAsset, Explanation, _explain, by_clock=True
    ),
)
