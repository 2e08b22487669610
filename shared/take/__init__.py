"""Take a snapshot: Kubernetes, AWS and stored rows into one Cluster."""
