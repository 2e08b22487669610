"""Savings Plans and Reserved Instances: the Savings Plans API, and the commitments of a payer account."""
