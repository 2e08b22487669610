"""Status of NodePools, NodeOverlays and objects that cannot be read."""
