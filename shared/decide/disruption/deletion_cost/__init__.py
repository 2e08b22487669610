"""Pod deletion costs, so that scaled-down workloads empty the nodes that consolidation would remove first."""
