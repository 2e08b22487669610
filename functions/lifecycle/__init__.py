"""The lifecycle function: advances each NodeClaim and node, every minute or sooner."""
