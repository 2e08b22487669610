"""The summary of one cluster, from what Joiner stored in its bucket."""
