"""The sources of fleet documents: journals, clusters, files."""
