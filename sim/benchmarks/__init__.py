"""Benchmarks: time of a decision and quality of plans."""
