"""The installer: what the stack creates in the cluster, and removes from it."""
