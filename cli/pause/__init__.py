"""`joiner pause` and `joiner resume`: annotations that hold back disruption or launches."""
