"""Nodes that take pods: existing nodes, open NodeClaims, NodePool limits."""
