"""AMI families: images, bootstrap and user data."""
