"""What pods cost at least: a price below which no plan can be."""
