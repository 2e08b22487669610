"""Images, networks and selectors of the embedded cloud."""
