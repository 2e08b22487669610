"""EC2 of the embedded cloud: fleets, instances, capacity pools, launch templates."""
