"""All scenarios by name."""

from arco_sim.scenario import Scenario
from arco_sim.scenarios.cas_counter import CasCounter, CasFlip
from arco_sim.scenarios.create_and_collect import CreateAndCollect
from arco_sim.scenarios.fold import FoldScenario
from arco_sim.scenarios.lease_steal import LeaseSteal
from arco_sim.scenarios.ledger_append import LedgerAppend
from arco_sim.scenarios.local_disk import LocalDisk
from arco_sim.scenarios.names import NamesScenario
from arco_sim.scenarios.run_log import RunLogScenario
from arco_sim.scenarios.table_commits import TableCommitsScenario

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        CasCounter(),
        CasFlip(),
        CreateAndCollect(),
        FoldScenario(),
        LeaseSteal(),
        LedgerAppend(),
        LocalDisk(),
        NamesScenario(),
        RunLogScenario(),
        TableCommitsScenario(),
    )
}
