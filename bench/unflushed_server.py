"""`arco serve` that leaves flushing to the system: what an answer says is in its memory, and gone if it loses power.

For comparisons with servers that do not flush either; nothing in the product can be told to do this.
"""

from arco.storage.roots import open_root
from arco.surface.cli.main import run

open_root.__kwdefaults__["sync"] = False  # also in workers, which load this file before they serve

if __name__ == "__main__":
    run()
