"""Publishing a project: an immutable manifest, identities that survive renames, and what may not change without saying so."""
