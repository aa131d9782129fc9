"""What data must look like, what was found, and what is done about it."""
