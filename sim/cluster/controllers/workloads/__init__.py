"""Controllers of workloads: Deployments, StatefulSets, DaemonSets, Jobs, disruption budgets."""
