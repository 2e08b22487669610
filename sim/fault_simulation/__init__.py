"""Deterministic fault simulation: a seed is a script of work and faults, run by the deployed handlers and checked."""
