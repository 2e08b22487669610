"""Lower bound of the cost of pods: no plan can be cheaper."""
