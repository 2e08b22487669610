"""Karpenter's objects: NodePool, NodeClaim, EC2NodeClass, NodeOverlay."""
