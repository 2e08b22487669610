"""Controllers of nodes: cloud node, node lifecycle, taint eviction, pod garbage collection."""
