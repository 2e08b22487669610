"""Simulated EC2, SSM, Pricing and EKS: state and rules over virtual time, without a wire format."""
