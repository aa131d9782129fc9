"""Upkeep on a store in memory."""
