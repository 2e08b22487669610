"""`joiner doctor --preflight`: what a deployment needs, checked with the credentials of the user who deploys."""
