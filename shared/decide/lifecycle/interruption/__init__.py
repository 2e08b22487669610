"""Interruption messages and instance status checks."""
