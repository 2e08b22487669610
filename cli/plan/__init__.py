"""`joiner plan`: where pending pods would go, and at which cost."""
