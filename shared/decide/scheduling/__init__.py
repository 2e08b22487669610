"""Scheduling: placement of pods on existing and new nodes."""
