"""`joiner doctor`: health of the cluster, the account and the installation."""
