"""The provision function: creates NodeClaims and instances for pending pods, every minute or sooner."""
