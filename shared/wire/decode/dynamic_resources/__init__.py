"""Dynamic resource allocation: claims, slices, and devices that NodeOverlays declare."""
