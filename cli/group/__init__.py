"""`joiner group`: what the clusters of a group use of their limit."""
