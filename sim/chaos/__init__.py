"""Deterministic simulation: a seed is a script of work and of faults, played by the deployed handlers and judged."""
