"""Instance types: labels, capacity, compatibility and the catalog."""
