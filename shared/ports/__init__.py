"""Protocols of the outside: Kubernetes, AWS, messages, storage."""
