"""Scheduling simulation of disruption: moves that can be undone."""
