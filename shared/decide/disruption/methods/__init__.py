"""Disruption methods: emptiness, drift, single-node and multi-node consolidation."""
