"""`joiner plan --upgrade`: what an upgrade of the EKS control plane will do to the nodes."""
