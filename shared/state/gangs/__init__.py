"""Gangs of pods."""
