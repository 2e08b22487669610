"""Kubernetes objects: Pod, Node, volumes, workloads, PodDisruptionBudget."""
