"""Optional features of scripts: their settings, manifests and events."""
