"""Servo: assets as functions, planned from recorded facts, run on Spark, published only when their checks say so."""
