"""Disruption commands: their phases, actions, validation and cleanup."""
