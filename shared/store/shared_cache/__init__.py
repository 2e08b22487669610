"""Large Kubernetes lists that a container stores in the bucket, so that the next cold container need not list them."""
