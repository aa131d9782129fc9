"""Events to Parquet: every table is a join of what events say, so replay, duplicates and reordering change nothing."""
