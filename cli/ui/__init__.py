"""`joiner ui`: the interactive page of a fleet, served on this machine."""
