"""Snapshots from manifests instead of a live cluster."""
