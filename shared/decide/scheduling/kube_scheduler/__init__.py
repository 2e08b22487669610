"""Simulation of kube-scheduler: queue, scores and the placement that results."""
