"""Transactions over several tables: prepare, decide, finish; finish or send back somebody else's."""
