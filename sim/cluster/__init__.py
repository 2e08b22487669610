"""An in-memory Kubernetes cluster: API server, scheduler, controllers and kubelets on one virtual clock."""
