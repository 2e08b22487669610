"""Random scripts of work and faults, drawn from a seed."""
