"""The controllers of kube-controller-manager and related controllers, one per file."""
