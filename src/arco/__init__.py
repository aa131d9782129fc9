"""Arco: a lakehouse in a bucket."""
