"""Which partitions there are, sets of them as ranges, and how the partitions of one asset need those of another."""
