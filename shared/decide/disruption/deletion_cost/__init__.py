"""Pod deletion costs, so that scaled-down workloads empty the emptiest nodes."""
