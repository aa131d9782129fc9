"""Iceberg's requirements, updates, table metadata and view metadata as plain data; no I/O, no clock, no randomness."""
