"""Objects with compare-and-swap: the port, its adapters, and what to do when a reply is lost."""
