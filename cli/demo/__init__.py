"""`joiner demo`: the classic scenario on an embedded cloud and cluster."""
