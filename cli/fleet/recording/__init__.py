"""The recorder: from observations of nodes and pods to the columns of a fleet document."""
