"""Dynamic resource allocation: the claims of pods, and drivers that publish devices."""
