"""The catalog function: resolves node classes and refreshes the catalog every five minutes."""
