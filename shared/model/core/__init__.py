"""Basic values: units, resources, requirements, labels, taints, conditions."""
