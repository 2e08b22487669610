"""Scenarios: YAML files of steps, played in the embedded world."""
