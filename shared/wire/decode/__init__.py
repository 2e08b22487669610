"""Decoding: Kubernetes JSON to the model, and errors by field."""
