"""Settings that functions read; each class adds its topic to the one before, as a msgspec struct has one base."""
