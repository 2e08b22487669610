"""Lifecycle of NodeClaims, from launch to termination."""
