"""The API server: storage, paths, watches and subresources."""
