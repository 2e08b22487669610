"""The interrupt function: handles messages of the interruption queue about instances that will stop soon."""
