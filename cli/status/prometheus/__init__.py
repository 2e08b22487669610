"""Metrics of the cluster in the text format of Prometheus."""
