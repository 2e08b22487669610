"""Constraints of pods: preferences, volumes, topology and validation."""
