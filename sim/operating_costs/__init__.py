"""Operating costs of Joiner per month: the bill of the synthesized stack, with measured durations."""
