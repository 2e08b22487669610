"""What EC2, SSM, Pricing and EKS do: state and rules over virtual time, without a wire format."""
