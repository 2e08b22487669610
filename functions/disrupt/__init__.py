"""The disrupt function: removes or replaces nodes that are not needed, every minute and when a node becomes due."""
