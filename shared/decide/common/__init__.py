"""Events and requeues that several decisions share."""
