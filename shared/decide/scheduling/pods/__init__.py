"""Pending pods, their equivalence classes and relaxation stages."""
