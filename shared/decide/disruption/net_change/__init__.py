"""Several disruption steps with the same result as one command that disrupts each node and moves each pod once."""
