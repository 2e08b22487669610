"""A Kubernetes cluster in memory: an API server, a scheduler, controllers and kubelets on one virtual clock."""
