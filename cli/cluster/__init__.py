"""The Kubernetes cluster of the command line: kubeconfig, clients, and reading page by page."""
