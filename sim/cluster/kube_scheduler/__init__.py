"""kube-scheduler: queue, filters, scores and volume binding."""
