"""The AWS session of the command line, and what it reads from EC2 and Pricing."""
