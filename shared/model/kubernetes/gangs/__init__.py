"""Gangs of pods, and requests for their capacity."""
