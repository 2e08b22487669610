"""`joiner catalog`: the catalog of an account, written to a file."""
