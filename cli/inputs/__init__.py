"""Input files: YAML, JSON and manifests, and the errors in them."""
