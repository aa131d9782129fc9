"""All scenarios by name."""

from arco_sim.scenario import Scenario
from arco_sim.scenarios.asked_runs import AskedRunsScenario
from arco_sim.scenarios.atomic_runs import AtomicRunsScenario
from arco_sim.scenarios.cas_counter import CasCounter, CasFlip
from arco_sim.scenarios.create_and_collect import CreateAndCollect
from arco_sim.scenarios.everybody import EverybodyScenario
from arco_sim.scenarios.feed import FeedScenario
from arco_sim.scenarios.fold import FoldScenario
from arco_sim.scenarios.fold_turns import FoldTurnsScenario
from arco_sim.scenarios.grouped_commits import GroupedCommitsScenario
from arco_sim.scenarios.lease_steal import LeaseSteal
from arco_sim.scenarios.ledger_append import LedgerAppend
from arco_sim.scenarios.local_disk import LocalDisk
from arco_sim.scenarios.maintenance import MaintenanceScenario
from arco_sim.scenarios.more_names import MoreNamesScenario
from arco_sim.scenarios.names import NamesScenario
from arco_sim.scenarios.names_told import NamesToldScenario
from arco_sim.scenarios.one_transaction import OneTransaction
from arco_sim.scenarios.run_log import RunLogScenario
from arco_sim.scenarios.schedule_ticks import ScheduleTicksScenario
from arco_sim.scenarios.source_ticks import SourceTicksScenario
from arco_sim.scenarios.table_commits import TableCommitsScenario
from arco_sim.scenarios.transactions import TransactionsScenario
from arco_sim.scenarios.upkeep import UpkeepScenario
from arco_sim.scenarios.workers import WorkersScenario

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        AskedRunsScenario(),
        AtomicRunsScenario(),
        CasCounter(),
        CasFlip(),
        CreateAndCollect(),
        EverybodyScenario(),
        FeedScenario(),
        FoldScenario(),
        FoldTurnsScenario(),
        GroupedCommitsScenario(),
        LeaseSteal(),
        LedgerAppend(),
        LocalDisk(),
        MaintenanceScenario(),
        MoreNamesScenario(),
        NamesScenario(),
        NamesToldScenario(),
        OneTransaction(),
        RunLogScenario(),
        ScheduleTicksScenario(),
        SourceTicksScenario(),
        TableCommitsScenario(),
        TransactionsScenario(),
        UpkeepScenario(),
        WorkersScenario(),
    )
}
