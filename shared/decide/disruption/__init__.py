"""Voluntary disruption: which nodes go, why, and how many at a time."""
