"""The embedded cloud over HTTP: moto, with EC2 and what belongs to it answered by `sim.cloud`."""
