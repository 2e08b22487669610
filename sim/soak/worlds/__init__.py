"""Worlds of simulated weeks: their NodePools, workloads and churn."""
