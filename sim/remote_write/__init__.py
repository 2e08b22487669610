"""An endpoint for Prometheus remote write that refuses what Amazon Managed Service for Prometheus refuses."""
