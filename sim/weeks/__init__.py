"""Weeks of a cluster that lives, played in the embedded world: what they cost, and whom they disturbed."""
