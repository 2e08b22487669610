"""The embedded cloud over HTTP: moto, with `sim.cloud` as the backend of EC2 and related services."""
