"""IAM permissions of the functions, and the role of the nodes."""
