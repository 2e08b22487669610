"""The state of Lambda and its API: functions, versions, aliases, layers, event source mappings and permissions."""
