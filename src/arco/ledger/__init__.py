"""The ledger: append-only events in immutable segments."""
