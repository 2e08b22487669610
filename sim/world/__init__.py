"""The embedded world: cloud, cluster and functions put together."""
