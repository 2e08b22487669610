"""EC2 values: instances, fleets, launch templates, account resources."""
