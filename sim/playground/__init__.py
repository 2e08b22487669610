"""The playground: a real control plane with the embedded cloud in real time."""
