"""Controllers of volumes: binding and attachment."""
