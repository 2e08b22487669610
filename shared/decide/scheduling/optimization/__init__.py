"""Cost optimization: packing problem, column generation and large neighborhood search."""
