"""`joiner playground`: a real control plane with an embedded cloud."""
