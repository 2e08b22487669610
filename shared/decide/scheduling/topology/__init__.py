"""Topology spread and pod affinity: groups, domains and messages."""
