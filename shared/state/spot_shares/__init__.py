"""Usage of Spot shares: of NodePools."""
