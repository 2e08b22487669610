"""What Joiner itself costs a month: the bill of its synthesised stack, with durations that were measured."""
