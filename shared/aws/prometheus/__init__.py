"""Requests to receivers of Prometheus."""
