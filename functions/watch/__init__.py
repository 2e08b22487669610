"""Every few seconds, or when kube-scheduler's log says so: whether pods began to wait."""
