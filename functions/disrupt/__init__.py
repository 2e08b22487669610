"""Every minute, and when a node's time comes: nodes that are not needed go."""
