"""Every route of the platform API in one table. What is served, what is described and what is compared all start here."""

from arco.kernel.entropy import SystemEntropy
from arco.surface.http.ask_assets import ASSET_QUESTIONS
from arco.surface.http.ask_catalog import CATALOG_QUESTIONS
from arco.surface.http.ask_health import HEALTH_QUESTIONS
from arco.surface.http.ask_lineage import LINEAGE_QUESTIONS
from arco.surface.http.ask_runs import RUN_QUESTIONS
from arco.surface.http.dead_letters import DeadLetters
from arco.surface.http.declaring import Endpoint
from arco.surface.http.deployments import DeploymentsOverHttp
from arco.surface.http.events import Events
from arco.surface.http.lineage import Lineage
from arco.surface.http.link_tokens import LinkTokens
from arco.surface.http.notifications import Notifications
from arco.surface.http.openapi import with_description
from arco.surface.http.platform import Platform
from arco.surface.http.run_requests import RunRequests
from arco.surface.http.runs import Runs
from arco.surface.http.server_state import ServerState
from arco.surface.http.signed_urls import SignedUrls
from arco.surface.http.state_files import StateFiles

QUESTIONS = (*CATALOG_QUESTIONS, *ASSET_QUESTIONS, *LINEAGE_QUESTIONS, *HEALTH_QUESTIONS, *RUN_QUESTIONS)


def api_endpoints(state: ServerState, tokens: LinkTokens | None = None, scheme: str = "http") -> tuple[Endpoint, ...]:
    """All of them, the route of the description among them. Whoever only describes them needs no tokens."""
    links = tokens or LinkTokens.of(None, SystemEntropy())
    return with_description(
        (
            *Platform(state).endpoints(),
            *Events(state).endpoints(),
            *Lineage(state).endpoints(),
            *Notifications(state).endpoints(),
            *DeadLetters(state).endpoints(),
            *DeploymentsOverHttp(state).endpoints(),
            *RunRequests(state).endpoints(),
            *Runs(state).endpoints(),
            *SignedUrls(state, links, scheme).endpoints(),
            *StateFiles(state, links).endpoints(),
            *(question.endpoint(state) for question in QUESTIONS),
        )
    )
