"""A message from the interruption queue: a machine is about to go."""
