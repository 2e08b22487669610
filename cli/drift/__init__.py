"""`joiner drift`: drifted nodes, and each field that differs."""
