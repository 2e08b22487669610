"""`joiner status` and `joiner top`: nodes, costs, pending pods and problems."""
