"""`joiner explain`: the reasons behind the state of a pod, node, NodePool, NodeClaim or command."""
