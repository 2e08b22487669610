"""Soak tests: simulated weeks of a cluster in the embedded world, with their costs and disruptions."""
