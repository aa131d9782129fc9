"""HTTP: the Iceberg REST catalog and the platform API, one file per resource. No logic in handlers."""
