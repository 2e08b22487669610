"""Devices of dynamic resource allocation: CEL selectors, and the allocation of devices to claims on one node."""
