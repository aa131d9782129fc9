"""The edge towards Python programs and notebooks: tables of a root as DataFrames, Arrow and DuckDB."""
