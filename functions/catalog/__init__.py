"""Every five minutes, and when a node class appears: what the account offers."""
