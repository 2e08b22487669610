"""Puts into the cluster what Joiner needs there, and takes it out again, when CloudFormation says so."""
