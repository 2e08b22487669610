"""Metrics for Prometheus: their table, and their values for a cluster."""
