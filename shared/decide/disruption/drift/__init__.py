"""Drift: detection, and the Drifted condition."""
