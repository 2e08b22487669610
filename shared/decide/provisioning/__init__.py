"""Provisioning: from pending pods to NodeClaims."""
