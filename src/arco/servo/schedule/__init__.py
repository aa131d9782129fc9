"""Driving a run: who may do what, and what is written down before and after. No Spark, no engine."""
