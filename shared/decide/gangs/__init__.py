"""Gangs: which of them wait, and why."""
