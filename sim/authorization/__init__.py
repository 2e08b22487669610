"""Permissions in the embedded world: the policies of the deployed template and the installed ClusterRoles."""
