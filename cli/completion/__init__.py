"""`joiner completion`: shell completion of commands, options and names."""
