"""`joiner hub`: the clusters of several accounts in one table."""
