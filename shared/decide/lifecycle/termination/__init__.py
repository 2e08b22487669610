"""Termination: drain, eviction, finalizers and deletion of the instance."""
