"""Which nodes scale-downs should empty, and new pods should fill last: deletion costs of pods, and a taint of nodes."""
