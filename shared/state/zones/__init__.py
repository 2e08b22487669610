"""The zones of the cluster: which are closed to new nodes."""
