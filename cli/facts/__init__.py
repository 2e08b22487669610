"""Facts that commands gather about the cluster, the account and the installation."""
