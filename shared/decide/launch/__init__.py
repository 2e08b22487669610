"""Launch decisions: EC2 requests for NodeClaims, and the meaning of the results."""
