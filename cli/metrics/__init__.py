"""`joiner metrics`: metrics of a cluster for Prometheus."""
