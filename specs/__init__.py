"""The protocols as models that are explored exhaustively: `make spec`."""
