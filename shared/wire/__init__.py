"""Kubernetes JSON and the model: schema, decoding and encoding."""
