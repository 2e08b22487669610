"""What AWS rejects: botocore's service models, and a table of the rules that the models do not contain."""
