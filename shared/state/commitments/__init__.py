"""Commitments (Savings Plans, Reserved Instances): what they cover of running instances, and what is left of them."""
