"""The local server of `joiner ui`: checks, endpoints and live updates."""
