"""Disruption budgets: schedules, limits, annotations and cluster-wide settings."""
