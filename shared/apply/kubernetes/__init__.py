"""Writes to the Kubernetes API: objects, events and node registration."""
