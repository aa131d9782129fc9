"""Who may do what to files: places that were checked, and credentials for exactly those."""
