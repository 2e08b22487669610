"""`joiner nodeclass`: what an EC2NodeClass resolves to in an account."""
