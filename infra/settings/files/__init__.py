"""The settings files of clusters: selection, reading, and editing without the loss of comments."""
