"""Dynamic resource allocation: the devices of nodes, and what the claims of pods request."""
