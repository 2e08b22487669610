"""Apply actions: one function for each kind of action."""
