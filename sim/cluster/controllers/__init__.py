"""The controllers of kube-controller-manager and their neighbours, one per file."""
