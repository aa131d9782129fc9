"""Answers from the files of one manifest. This room never writes."""
