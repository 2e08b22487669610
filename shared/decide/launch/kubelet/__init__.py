"""Kubelet configuration, and CEL expressions in it."""
