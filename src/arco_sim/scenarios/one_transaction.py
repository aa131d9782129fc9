"""One transaction over two or three tables, sent again to another server when the first falls silent; then everybody is asked.

Small enough that every pair of faults can be tried, in every step that the first of them brings about: what happens when the
recovery from one fault meets another.
"""

from arco_sim.clients import Clients
from arco_sim.scenarios.transactions import BANK, TransactionsScenario
from arco_sim.world import World


class OneTransaction(TransactionsScenario):
    name = "one_transaction"
    promise = "one transaction over up to three tables is visible in all of them or in none, whatever two things go wrong"
    others = ()

    def __init__(self, tables: int = 3) -> None:
        self.bank = BANK[:tables]

    def start(self, world: World, *, small: bool) -> None:
        """Small or not, it is the same."""
        world.notes["clients"] = Clients(world, [[f"mark {' '.join(self.bank)}"]], 2)
        for number in range(2):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n), lives=4)  # type: ignore[misc]
