"""Encoding: the model to Kubernetes JSON."""
