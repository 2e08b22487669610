"""Controllers of all objects: garbage collection and namespaces."""
