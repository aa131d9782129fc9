"""Tier 1 and the Iceberg commit: names, pointers, commits, idempotency, receipts."""
