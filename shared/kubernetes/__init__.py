"""The Kubernetes API behind `shared.ports.kubernetes.Kube`."""
