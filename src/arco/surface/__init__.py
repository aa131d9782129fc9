"""The edges: the command line and HTTP."""
