"""Search for the cheapest plan: guided packing, local search and warm start."""
