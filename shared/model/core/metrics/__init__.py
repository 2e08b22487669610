"""Values of metrics for Prometheus."""
