"""Alarms, dashboard, log queries and the metrics that they read."""
