"""Upkeep: the only room that deletes, on proof and after a grace period."""
