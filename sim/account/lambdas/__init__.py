"""Lambda's state and its API: functions, versions, aliases, layers, event source mappings, and who may call."""
