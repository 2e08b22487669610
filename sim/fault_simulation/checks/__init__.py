"""Checks of a simulated run: invariants, eventual invariants and limits."""
