"""The simulator: protocol code under seeded schedules, faults and crashes. It imports arco; arco never imports it."""
