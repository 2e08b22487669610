"""Lists and watches of the Kubernetes API, decoded and cached."""
