"""The checks of `joiner doctor`: facts in, findings out, without any request."""
