"""Metrics that are written to Prometheus by remote write."""
