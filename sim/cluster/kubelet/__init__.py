"""The kubelet: boot, pod stages and user data."""
