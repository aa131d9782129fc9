"""The scenarios, one file each; `registry.py` lists them."""
