"""Values with no I/O; the only room that reads the clock or makes randomness."""
