"""Metrics: counts, latencies and API calls in the embedded metric format."""
