"""`joiner audit`: resources in the account and in the cluster that nothing accounts for."""
